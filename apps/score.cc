// score: logits of given ids or text to a NumPy file, mean negative log-likelihood and perplexity.
#include "engine/score.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "model_options.h"

namespace steadfast {
namespace {

struct ScoreOptions {
  ModelOptions model;
  std::string ids, text, out;
  int chunk = 512;
  bool json = false;
};

// A NumPy file (version 1.0) of float32 [rows, columns], written row by row.
class NpyWriter {
 public:
  Status open(const std::string& path, std::size_t rows, std::size_t columns) {
    file_.open(path, std::ios::binary);
    if (!file_) return Status::error("cannot write {}; is the folder there?", path);
    std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
    header.append(64 - (10 + header.size() + 1) % 64, ' ');
    header += '\n';
    const auto length = static_cast<std::uint16_t>(header.size());
    file_.write("\x93NUMPY\x01\x00", 8);
    file_.write(reinterpret_cast<const char*>(&length), 2);
    file_ << header;
    return Status::ok();
  }
  Status write(const float* values, std::size_t count) {
    file_.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(count * sizeof(float)));
    return file_ ? Status::ok() : Status::error("writing the logits failed; is the disk full?");
  }
  Status close() {
    file_.close();
    return file_ ? Status::ok() : Status::error("writing the logits failed; is the disk full?");
  }

 private:
  std::ofstream file_;
};

Result<std::vector<TokenId>> ids_of(const ScoreOptions& options, const LoadedModel& loaded) {
  if (!options.ids.empty()) return read_ids(options.ids, loaded.card.vocab_size);
  if (!loaded.tokenizer)
    return Status::error("the model has no tokenizer files, so it cannot score text; give --ids FILE.json");
  std::ifstream file(options.text, std::ios::binary);
  if (!file) return Status::error("cannot read {}; is the path right?", options.text);
  std::stringstream content;
  content << file.rdbuf();
  return loaded.tokenizer->encode(content.str());
}

int run(const ScoreOptions& options) {
  if (options.ids.empty() == options.text.empty()) return misuse("score needs either --ids FILE.json or --text FILE");
  if (options.chunk < 1) return misuse("--chunk must be at least 1");
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  auto ids = ids_of(options, **loaded);
  if (!ids) return fail(ids.status());
  NpyWriter writer;
  const auto vocab = static_cast<std::size_t>((*loaded)->card.vocab_size);
  if (!options.out.empty())
    if (auto status = writer.open(options.out, ids->size(), vocab); !status) return fail(status);
  double total = 0;
  ProgressBar bar("scoring");
  auto status = score(
      **loaded, *ids, options.chunk,
      [&](int first, int rows, const float* logits) {
        for (int row = 0; row < rows; ++row) {
          const auto next = static_cast<std::size_t>(first + row + 1);
          if (next < ids->size())
            total += negative_log_likelihood({logits + static_cast<std::size_t>(row) * vocab, vocab}, (*ids)[next]);
        }
        bar.show(first + rows, static_cast<int>(ids->size()));
        return options.out.empty() ? Status::ok() : writer.write(logits, static_cast<std::size_t>(rows) * vocab);
      },
      options.model.page_positions().value());
  bar.clear();
  if (status && !options.out.empty()) status = writer.close();
  if (!status) return fail(status);
  const std::size_t scored = ids->size() - 1;
  const double mean = scored > 0 ? total / static_cast<double>(scored) : 0.0;
  if (options.json) {
    nlohmann::ordered_json json = {
        {"tokens", ids->size()}, {"scored", scored}, {"mean_nll", mean}, {"perplexity", std::exp(mean)}};
    if (!options.out.empty()) json["logits"] = options.out;
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("{} tokens, mean negative log-likelihood {:.6f}, perplexity {:.4f}\n", ids->size(), mean,
               std::exp(mean));
  }
  return 0;
}

}  // namespace

void add_score(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<ScoreOptions>();
  auto* command = app.add_subcommand("score", "Logits, mean negative log-likelihood and perplexity of a text");
  options->model.add_to(*command);
  command->add_option("--ids", options->ids, "JSON array of token ids");
  command->add_option("--text", options->text, "Text file");
  command->add_option("--chunk", options->chunk, "Rows a round")->capture_default_str();
  command->add_option("--out", options->out, "NumPy file for the float32 logits [tokens, vocab]");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace steadfast
