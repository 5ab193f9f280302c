// steadfast tokenize: text to ids. Prints a JSON array of ids; with --strings one array for each string.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "command.h"
#include "tokenizer_input.h"

namespace steadfast {
namespace {

using nlohmann::ordered_json;

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text, file, strings;
  bool untrusted = false;
  bool json = false;
};

Result<std::vector<std::string>> read_strings(const std::string& path) {
  const auto json = read_json_input(path);
  if (!json) return json.status();
  const auto is_string = [](const auto& item) { return item.is_string(); };
  if (!json->is_array() || !std::all_of(json->begin(), json->end(), is_string)) {
    return Status::error("{} is not a JSON array of strings: write it as [\"one\", \"two\"]", path);
  }
  return json->get<std::vector<std::string>>();
}

void print(const ordered_json& ids, bool json) { std::puts((json ? ordered_json{{"ids", ids}} : ids).dump().c_str()); }

int tokenize(const TokenizeOptions& options) {
  if (options.text.has_value() + options.file.has_value() + options.strings.has_value() != 1) {
    return misuse("give the input as one of --text TEXT, --file FILE and --strings FILE.json");
  }
  std::vector<std::string> texts;
  if (options.text) texts.push_back(*options.text);
  if (options.file) {
    auto text = read_input(*options.file);
    if (!text) return misuse(text.message());
    texts.push_back(std::move(*text));
  }
  if (options.strings) {
    auto strings = read_strings(*options.strings);
    if (!strings) return misuse(strings.message());
    texts = std::move(*strings);
  }
  const auto tokenizer = load_tokenizer(options.model);
  if (!tokenizer) return fail(tokenizer.status());
  ordered_json ids = ordered_json::array();
  for (const auto& text : texts) ids.push_back(tokenizer->encode(text, {.match_special = !options.untrusted}));
  print(options.strings ? ids : ids.front(), options.json);
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<TokenizeOptions>();
  auto* command = app.add_subcommand("tokenize", "Turn text into token ids");
  command->add_option("model", options->model, "Folder with tokenizer files, .gguf file, or stored name")->required();
  command->add_option("--text", options->text, "The text itself");
  command->add_option("--file", options->file, "A file that holds the text");
  command->add_option("--strings", options->strings, "A file with a JSON array of strings: prints an array of arrays");
  command->add_flag("--untrusted", options->untrusted, "Read \"<|im_end|>\" and the like as plain text");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, &exit_status] { exit_status = tokenize(*options); });
}

}  // namespace steadfast
