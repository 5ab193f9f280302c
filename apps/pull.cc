// `steadfast pull NAME`: fetches a model into the store and prints its folder.
#include "store/pull.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/config.h"
#include "command.h"
#include "store/wheel.h"

namespace steadfast {
namespace {

constexpr std::uint64_t kMostBytes = 256'000'000'000;

// Sentences and a line of progress on standard error; without a terminal the sentences alone.
class StderrReporter : public Reporter {
 public:
  ~StderrReporter() override { end_line(); }

  void note(const std::string& sentence) override {
    end_line();
    std::fprintf(stderr, "%s\n", sentence.c_str());
  }

  void progress(const std::string& file, std::uint64_t done, std::uint64_t total) override {
    if (!terminal_) return;
    const auto now = std::chrono::steady_clock::now();
    const bool last = done == total && total != 0;
    if (!last && now - shown_ < std::chrono::milliseconds(100)) return;
    shown_ = now;
    const double done_mb = static_cast<double>(done) / 1e6;
    const double total_mb = static_cast<double>(total) / 1e6;
    std::fprintf(stderr, "\r\033[K%s  %.1f MB", file.c_str(), done_mb);
    if (total != 0) std::fprintf(stderr, " of %.1f  %d%%", total_mb, static_cast<int>(100 * done_mb / total_mb));
    line_open_ = true;
    if (last) end_line();
    std::fflush(stderr);
  }

 private:
  void end_line() {
    if (line_open_) std::fprintf(stderr, "\n");
    line_open_ = false;
  }

  bool line_open_ = false;
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::chrono::steady_clock::time_point shown_;
};

int list_models(const Store& store) {
  std::printf("stored in %s:\n", store.root().c_str());
  const auto models = store.list();
  if (models.empty()) std::printf("  nothing\n");
  for (const StoredModel& model : models) {
    std::printf("  %-40s %10.1f MB\n", model.name.c_str(), static_cast<double>(model.bytes) / 1e6);
  }
  std::printf("known to pull:\n");
  for (const WheelRecipe& recipe : wheel_recipes()) {
    std::printf("  %-40s %10.1f MB  %s\n", std::string(recipe.name).c_str(), static_cast<double>(recipe.bytes) / 1e6,
                std::string(recipe.title).c_str());
  }
  return 0;
}

struct Options {
  PullRequest request;
  std::string sha256;
  bool list = false;
};

int run(Options options) {
  const Store store(config().models());
  if (options.list) return list_models(store);
  if (options.request.what.empty())
    return misuse("pull needs the NAME of a model; `steadfast pull --list` shows the known ones");
  if (!options.sha256.empty()) options.request.sha256 = options.sha256;
  const auto folder = [&] {
    StderrReporter reporter;
    return pull(options.request, store, {config().hf_endpoint, config().hf_token}, reporter);
  }();
  if (!folder) return fail(folder.status());
  std::printf("%s\n", folder->c_str());
  return 0;
}

}  // namespace

void add_pull(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<Options>();
  options->request.most_bytes = kMostBytes;
  CLI::App* command = app.add_subcommand("pull", "Fetch a model, which can then be named");
  command->add_option("NAME", options->request.what, "A known name, ORG/NAME of a hub, or the URL of a .gguf file");
  command->add_flag("--list", options->list, "Show what is stored and what is known");
  command->add_flag("--force", options->request.force, "Fetch again, and replace what is stored");
  command->add_option("--sha256", options->sha256, "The digest that a URL's file must have");
  command->add_option("--revision", options->request.revision, "Branch, tag or commit of a hub's model")
      ->capture_default_str();
  command->add_option("--max-size", options->request.most_bytes, "Refuse a model of more bytes (20GB, say)")
      ->transform(CLI::AsSizeValue(true))
      ->default_str("256GB");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace steadfast
