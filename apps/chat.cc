// chat: a conversation in the terminal. Replies are streamed; Ctrl-C stops one; /reset starts anew; /quit ends.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>

#include "engine/engine.h"
#include "prompt_options.h"
#include "wait_reply.h"

namespace steadfast {
namespace {

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string system;
};

std::atomic<bool> interrupted{false};

void on_interrupt(int) { interrupted.store(true); }

// SIGINT sets a flag; without SA_RESTART it also ends a blocked read, so Ctrl-C at the prompt leaves the program.
void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

class Conversation {
 public:
  Conversation(Engine& engine, const ChatOptions& options) : engine_(engine), options_(options) { reset(); }

  void reset() {
    messages_ = Json::array();
    if (!options_.system.empty()) messages_.push_back({{"role", "system"}, {"content", options_.system}});
  }

  Status say(const std::string& line) {
    messages_.push_back({{"role", "user"}, {"content", line}});
    TemplateInput input;
    input.messages = messages_;
    input.now = now_;
    auto prompt = render_prompt(engine_.loaded(), input);
    if (!prompt) return undo(prompt.status());
    Request request;
    request.prompt = std::move(*prompt);
    if (auto status = options_.sampling.apply(engine_.loaded(), request); !status) return undo(status);
    interrupted.store(false);
    std::string text;
    auto end = wait_reply(
        engine_, std::move(request),
        [&](const ReplyPiece& piece) {
          if (interrupted.load()) return;
          text += piece.text;
          fmt::print("{}", piece.text);
          std::fflush(stdout);
        },
        [] { return interrupted.load(); });
    fmt::print("{}\n\n", end && end->reason == FinishReason::kCancelled ? " [stopped]" : "");
    if (!end) return undo(end.status());
    messages_.push_back({{"role", "assistant"}, {"content", text}});
    return Status::ok();
  }

 private:
  Status undo(Status status) {
    messages_.erase(messages_.end() - 1);
    return status;
  }

  Engine& engine_;
  const ChatOptions& options_;
  Json messages_;
  const std::int64_t now_ = clock_seconds();  // one time for all turns, so that each prompt begins as the one before
};

int run(const ChatOptions& options) {
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  if (!(*loaded)->chat_template)
    return fail(Status::error("{} has no chat template; use `steadfast generate --raw`", options.model.model));
  EngineOptions engine_options;
  options.model.apply(engine_options);
  auto engine = Engine::create(std::move(*loaded), engine_options);
  if (!engine) return fail(engine.status());
  const bool terminal = ::isatty(STDIN_FILENO) != 0;
  if (terminal)
    fmt::print(stderr, "{}: /reset starts anew, /quit ends, Ctrl-C stops a reply.\n", (*engine)->card().name);
  catch_interrupts();
  Conversation conversation(**engine, options);
  for (std::string line;;) {
    if (terminal) {
      fmt::print("> ");
      std::fflush(stdout);
    }
    if (!std::getline(std::cin, line)) break;
    if (line == "/quit" || line == "/exit") break;
    if (line == "/reset") {
      conversation.reset();
      continue;
    }
    if (line.empty()) continue;
    if (line[0] == '/') {
      fmt::print(stderr, "unknown command {}; /reset and /quit are known\n", line);
      continue;
    }
    if (auto status = conversation.say(line); !status) fmt::print(stderr, "steadfast: {}\n", status.message());
  }
  return 0;
}

}  // namespace

void add_chat(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<ChatOptions>();
  auto* command = app.add_subcommand("chat", "A conversation in the terminal");
  options->model.add_to(*command);
  options->sampling.add_to(*command);
  command->add_option("--system", options->system, "System message");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace steadfast
