// steadfast detokenize: ids to text, special tokens included. Prints the text and nothing after it, so that it is
// exact.
#include <cstdio>
#include <memory>

#include "command.h"
#include "tokenizer_input.h"

namespace steadfast {
namespace {

using nlohmann::ordered_json;

struct DetokenizeOptions {
  std::string model, ids;
  bool skip_special = false;
  bool json = false;
};

Result<std::vector<TokenId>> read_ids(const nlohmann::json& array, const Tokenizer& tokenizer,
                                      const std::string& path) {
  std::vector<TokenId> ids;
  for (const auto& item : array) {
    if (!item.is_number_integer()) {
      return Status::error("{} is not a JSON array of token ids: write it as [1, 2, 3]", path);
    }
    const bool fits = item.is_number_unsigned() && item.get<std::uint64_t>() < tokenizer.vocab_size();
    if (!fits || !tokenizer.contains(item.get<TokenId>())) {
      return Status::error("id {} in {} is not in the vocabulary: use ids below {} that the model's tokenizer has",
                           item.dump(), path, tokenizer.vocab_size());
    }
    ids.push_back(item.get<TokenId>());
  }
  return ids;
}

// What `tokenize` prints: an array of ids, an array of such arrays, or an object with one of these as "ids".
Result<nlohmann::json> read_lists(const std::string& path) {
  auto json = read_json_input(path);
  if (!json) return json.status();
  nlohmann::json lists = json->is_object() && json->contains("ids") ? json->at("ids") : std::move(*json);
  if (!lists.is_array()) return Status::error("{} is not a JSON array of token ids: write it as [1, 2, 3]", path);
  return lists;
}

int detokenize(const DetokenizeOptions& options) {
  const auto lists = read_lists(options.ids);
  if (!lists) return misuse(lists.message());
  const auto tokenizer = load_tokenizer(options.model);
  if (!tokenizer) return fail(tokenizer.status());
  const bool many = !lists->empty() && lists->front().is_array();
  ordered_json texts = ordered_json::array();
  for (const auto& list : many ? *lists : nlohmann::json::array({*lists})) {
    if (!list.is_array()) return misuse(fmt::format("{} has ids beside lists of ids: give either", options.ids));
    const auto ids = read_ids(list, *tokenizer, options.ids);
    if (!ids) return misuse(ids.message());
    texts.push_back(tokenizer->decode(*ids, options.skip_special));
  }
  const ordered_json& result = many ? texts : texts.front();
  if (options.json) {
    std::puts(ordered_json{{"text", result}}.dump().c_str());
  } else if (many) {
    std::puts(result.dump().c_str());
  } else {
    const auto& text = result.get_ref<const std::string&>();
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return 0;
}

}  // namespace

void add_detokenize(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<DetokenizeOptions>();
  auto* command = app.add_subcommand("detokenize", "Turn token ids into text");
  command->add_option("model", options->model, "Folder with tokenizer files, .gguf file, or stored name")->required();
  command->add_option("--ids", options->ids, "A file with a JSON array of ids, or of such arrays")->required();
  command->add_flag("--skip-special", options->skip_special, "Leave out special tokens such as <|im_end|>");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, &exit_status] { exit_status = detokenize(*options); });
}

}  // namespace steadfast
