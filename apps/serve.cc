// serve: the OpenAI-compatible server over one model, until SIGINT or SIGTERM; a second signal ends it at once.
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/config.h"
#include "engine/engine.h"
#include "model_options.h"
#include "server/server.h"

namespace steadfast {
namespace {

struct ServeOptions {
  ModelOptions model;
  ServerOptions server;
  std::string api_key_file, drafter;
  int parallel = 4, context = 0, max_queue = 64;
  double prompt_share = EngineOptions().prompt_share;
  bool no_drafts = false;
};

int stop_event = -1;  // the one thing that a signal's handler can reach
volatile std::sig_atomic_t signals_seen = 0;

void on_signal(int number) {
  const std::uint64_t one = 1;
  signals_seen = signals_seen + 1;
  if (signals_seen > 1 || write(stop_event, &one, sizeof one) < 0) _exit(128 + number);
}

void wait_for_signal() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  pollfd entry{stop_event, POLLIN, 0};
  while (poll(&entry, 1, -1) <= 0) {
  }
}

void set_up_log() {
  const auto color = config().no_color ? spdlog::color_mode::never : spdlog::color_mode::automatic;
  spdlog::set_default_logger(spdlog::stderr_color_mt("steadfast", color));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
  spdlog::set_level(spdlog::level::from_str(config().log_level));
}

// A connection is a file descriptor; the usual soft limit of 1024 would be the first thing to run out.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) spdlog::warn("the limit of open files could not be raised");
}

// What is wrong with the options as such, or asks for what this build does not have; empty: nothing.
std::string complaint(const ServeOptions& options) {
  if (auto page = options.model.page_positions(); !page) return page.message();
  if (!options.drafter.empty()) return "drafters are not built in; leave out --drafter";
  const std::string& alias = options.server.alias;
  const bool clean = std::all_of(alias.begin(), alias.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (alias.size() > 256 || !clean) return "--alias must have at most 256 printable ASCII characters without spaces";
  const std::string& origin = options.server.cors_origin;
  const bool is_origin =
      origin == "*" || ((origin.starts_with("http://") || origin.starts_with("https://")) &&
                        origin.find('/', 8) == std::string::npos && origin.find_first_of(" \r\n") == std::string::npos);
  if (!origin.empty() && !is_origin)
    return "--cors-origin must be *, or an origin such as https://example.org (no path)";
  return "";
}

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

void greet(const ApiServer& server, const ServeOptions& options, const std::string& name) {
  fmt::print("{} is served at {}/v1\n", name, server.url());
  std::fflush(stdout);
  const char* key = options.server.api_keys.empty() ? "" : " -H 'Authorization: Bearer KEY'";
  fmt::print(stderr,
             "Try:\n  curl {}/v1/chat/completions{} -H 'Content-Type: application/json' \\\n"
             "    -d '{{\"messages\": [{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'\n",
             server.url(), key);
  if (options.server.api_keys.empty() && !is_loopback(options.server.host)) {
    spdlog::warn("anyone who reaches {} may use this server: give --api-key-file, or --host 127.0.0.1", server.url());
  }
}

int run(ServeOptions& options) {
  if (const std::string sentence = complaint(options); !sentence.empty()) return misuse(sentence);
  if (!options.api_key_file.empty()) {
    auto keys = read_api_keys(options.api_key_file);
    if (!keys) return misuse(keys.message());
    options.server.api_keys = std::move(*keys);
  }
  if (options.server.alias.empty() && is_stored_name(options.model.model)) options.server.alias = options.model.model;
  set_up_log();
  raise_file_limit();
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  EngineOptions engine_options;
  engine_options.streams = options.parallel;
  engine_options.context = options.context;
  engine_options.prompt_share = options.prompt_share;
  options.model.apply(engine_options);
  auto engine = Engine::create(std::move(*loaded), engine_options);
  if (!engine) return fail(engine.status());
  spdlog::info("{}", (*engine)->memory().sentence());
  stop_event = eventfd(0, EFD_CLOEXEC);
  if (stop_event < 0) return fail(Status::error("the system gives no event descriptor; close other programs"));
  options.server.streams = options.parallel + options.max_queue;
  auto server = ApiServer::start(**engine, options.server);
  if (!server) return fail(server.status());
  greet(**server, options, options.server.alias.empty() ? (*engine)->card().name : options.server.alias);
  wait_for_signal();
  spdlog::info("stopping: replies have {} s to finish; a second signal ends them at once",
               options.server.shutdown_seconds);
  (*server)->shutdown();
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<ServeOptions>();
  auto* command = app.add_subcommand("serve", "OpenAI-compatible server");
  options->model.add_to(*command);
  ServerOptions& server = options->server;
  command->add_option("--host", server.host, "Address to listen on")->capture_default_str();
  command->add_option("--port", server.port, "Port; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--parallel", options->parallel, "Streams computed at once; more wait")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--max-queue", options->max_queue, "Streams that may wait; more are told 503")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  command
      ->add_option("--context", options->context,
                   "Positions of a stream, prompt and reply together; 0: the model's own, or as many as memory allows")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command
      ->add_option("--prompt-share", options->prompt_share,
                   "The part of the time that other streams' prompts may take while replies run, 0.01 to 1")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  command->add_option("--timeout", server.reply_seconds, "Seconds that a reply may take; 0: any time")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command->add_option("--alias", server.alias,
                      "The model's name for clients (default: the stored name, else the folder's or file's)");
  command->add_option("--api-key-file", options->api_key_file,
                      "File with one API key a line; without it none is asked for");
  command->add_option("--cors-origin", server.cors_origin, "The web origin whose pages may call, or *; default: none");
  command->add_option("--drafter", options->drafter, "Folder of a draft model");
  command->add_flag("--no-drafts", options->no_drafts, "Draft nothing");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace steadfast
