// steadfast template: the prompt that a model's chat template makes of messages, printed exactly.
#include <cstdio>
#include <memory>
#include <optional>

#include "command.h"
#include "formats/gguf.h"
#include "text/chat_template.h"
#include "tokenizer_input.h"

namespace steadfast {
namespace {

struct TemplateOptions {
  std::string model;
  std::string messages;
  std::optional<std::string> tools, kwargs;
  std::optional<std::int64_t> now;
  bool no_generation_prompt = false;
};

// Keys stay in the file's order: templates print them so.
Result<Json> read_ordered_json(const std::string& path) {
  const auto text = read_input(path);
  if (!text) return text.status();
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) return Status::error("{} is not JSON: check what wrote it", path);
  return json;
}

// The messages of a file: the array itself, or a request of the chat API that holds it (and its tools).
Result<TemplateInput> read_request(const TemplateOptions& options) {
  auto messages = read_ordered_json(options.messages);
  if (!messages) return messages.status();
  TemplateInput input;
  if (messages->is_object() && messages->contains("messages")) {
    if (messages->contains("tools")) input.tools = (*messages)["tools"];
    input.messages = (*messages)["messages"];
  } else {
    input.messages = std::move(*messages);
  }
  if (!input.messages.is_array()) {
    return Status::error(
        "{} is not a JSON array of messages: write it as [{{\"role\": \"user\", \"content\": \"Hi\"}}]",
        options.messages);
  }
  if (options.tools) {
    auto tools = read_ordered_json(*options.tools);
    if (!tools) return tools.status();
    if (!tools->is_array()) return Status::error("{} is not a JSON array of tools", *options.tools);
    input.tools = std::move(*tools);
  }
  if (options.kwargs) {
    input.kwargs = Json::parse(*options.kwargs, nullptr, false);
    if (!input.kwargs.is_object()) {
      return Status::error("--kwargs is not a JSON object: write it as '{{\"enable_thinking\": false}}'");
    }
  }
  input.now = options.now;
  input.add_generation_prompt = !options.no_generation_prompt;
  return input;
}

Result<ChatTemplate> load_template(const std::string& model) {
  const auto path = resolve_model(model);
  if (!path) return path.status();
  std::error_code error;
  std::filesystem::path file = *path;
  if (std::filesystem::is_directory(file, error)) {
    auto found = ChatTemplate::from_folder(file);
    if (found || only_gguf(file).empty()) return found;
    file = only_gguf(file);
  }
  const auto gguf = GgufFile::open(file);
  if (!gguf) return gguf.status();
  return ChatTemplate::from_gguf(**gguf);
}

int print_prompt(const TemplateOptions& options) {
  const auto input = read_request(options);
  if (!input) return misuse(input.message());
  const auto chat_template = load_template(options.model);
  if (!chat_template) return fail(chat_template.status());
  const auto text = chat_template->render(*input);
  if (!text) return fail(text.status());
  if (std::fwrite(text->data(), 1, text->size(), stdout) != text->size() || std::fflush(stdout) != 0) {
    return fail(Status::error("cannot write to standard output"));
  }
  return 0;
}

}  // namespace

void add_template(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<TemplateOptions>();
  auto* command = app.add_subcommand("template", "Print the prompt that a model's chat template makes of messages");
  command->add_option("model", options->model, "Folder with a chat template, .gguf file, or stored name")->required();
  command->add_option("--messages", options->messages, "A file with a JSON array of messages, or a whole chat request")
      ->required();
  command->add_option("--tools", options->tools, "A file with a JSON array of tools");
  command->add_option("--kwargs", options->kwargs, "A JSON object of names for the template");
  command->add_option("--now", options->now,
                      "Seconds since 1970, for templates that print the date (default: the clock)");
  command->add_flag("--no-generation-prompt", options->no_generation_prompt, "Do not open the assistant's reply");
  command->callback([options, &exit_status] { exit_status = print_prompt(*options); });
}

}  // namespace steadfast
