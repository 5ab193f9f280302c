// GGUF's tokenizer metadata in the words of tokenizer.json (model-spec 4.5, 6.1).
#include "convert/text_files.h"

#include <algorithm>

#include "formats/untrusted.h"
#include "text/byte_alphabet.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace steadfast {
namespace fs = std::filesystem;
namespace {

using nlohmann::ordered_json;

enum TokenType : std::int64_t { kNormal = 1, kUserDefined = 4, kUnused = 5 };

const GgufValue* value_of(const GgufFile& file, const char* key) {
  return file.value(std::string("tokenizer.ggml.") + key);
}

std::string text_of(const GgufFile& file, const char* key) {
  const GgufValue* value = value_of(file, key);
  return value == nullptr ? "" : std::string(value->as_string().value_or(""));
}

ordered_json pre_tokenizer_json(const PreTokenizer::GgufPattern& pattern) {
  auto steps = ordered_json::array();
  if (pattern.digits_first) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (!pattern.is_gpt2)
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", pattern.pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  steps.push_back(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", pattern.is_gpt2}});
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

struct Vocabulary {
  ordered_json tokens = ordered_json::object();
  ordered_json added = ordered_json::array();
};

// Added tokens among the others' ids stand in the vocabulary too: Hugging Face's own reader gives an added token that
// is not there the next free id. Not where that would let text become one by merging, or change what it stands for.
bool stands_in_vocabulary(std::string_view text, bool special, bool ignores_merges) {
  const bool literal = alphabet_to_bytes(text).value_or(std::string(text)) == text;
  return literal && text.size() > 1 && (special || !ignores_merges);
}

Vocabulary vocabulary_of(const GgufFile& file, bool ignores_merges) {
  const GgufArray& tokens = *value_of(file, "tokens")->as_array();
  const GgufValue* types = value_of(file, "token_type");
  const auto type_of = [&](std::size_t i) {
    return types == nullptr ? std::int64_t{kNormal} : (*types->as_array())[i].as_int().value_or(kNormal);
  };
  std::size_t last_normal = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (type_of(i) == kNormal) last_normal = i;
  Vocabulary result;
  std::vector<std::pair<std::string, std::size_t>> entries;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string text(*tokens[i].as_string());
    const auto type = type_of(i);
    if (type == kUnused) continue;
    const bool special = type != kUserDefined;
    if (type == kNormal || (i < last_normal && stands_in_vocabulary(text, special, ignores_merges)))
      entries.emplace_back(text, i);
    if (type == kNormal) continue;
    result.added.push_back({{"id", i},
                            {"content", text},
                            {"single_word", false},
                            {"lstrip", false},
                            {"rstrip", false},
                            {"normalized", false},
                            {"special", special}});
  }
  // An ordered_json object looks through its keys at each insertion; built as a list it does not.
  ordered_json::object_t object;
  object.reserve(entries.size());
  for (auto& [text, id] : entries) object.push_back({std::move(text), id});
  result.tokens = std::move(object);
  return result;
}

Result<ordered_json> merges_of(const GgufFile& file) {
  auto merges = ordered_json::array();
  for (const GgufValue& merge : *value_of(file, "merges")->as_array()) {
    const std::string_view text = *merge.as_string();
    const std::size_t space = text.find(' ', 1);  // as the tokenizer's own reader
    merges.push_back({text.substr(0, space), text.substr(space + 1)});
  }
  return merges;
}

}  // namespace

Result<ordered_json> tokenizer_json(const GgufFile& file) {
  auto tokenizer = Tokenizer::from_gguf(file);  // checks all that is read below
  if (!tokenizer) return tokenizer.status();
  const std::string pre = text_of(file, "pre");
  const auto pattern = PreTokenizer::gguf_pattern(pre);
  CHECK(pattern.has_value(), "pre-tokenizer {} is known to of_gguf alone", pre);
  const bool ignores_merges = pre.starts_with("llama");
  Vocabulary vocabulary = vocabulary_of(file, ignores_merges);
  auto merges = merges_of(file);
  if (!merges) return merges.status();
  ordered_json json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  json["added_tokens"] = std::move(vocabulary.added);
  json["normalizer"] = pre.starts_with("qwen") ? ordered_json{{"type", "NFC"}} : ordered_json(nullptr);
  json["pre_tokenizer"] = pre_tokenizer_json(*pattern);
  json["post_processor"] = nullptr;
  json["decoder"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  json["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", ignores_merges}};
  json["model"]["vocab"] = std::move(vocabulary.tokens);
  json["model"]["merges"] = std::move(*merges);
  return json;
}

Result<ordered_json> tokenizer_config(const GgufFile& file) {
  ordered_json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                       {"clean_up_tokenization_spaces", false},
                       {"add_prefix_space", false}};
  const GgufValue* add_bos = value_of(file, "add_bos_token");
  if (add_bos != nullptr && add_bos->as_bool()) json["add_bos_token"] = *add_bos->as_bool();
  const GgufArray& tokens = *value_of(file, "tokens")->as_array();
  for (const auto& [name, key] : {std::pair{"bos_token", "bos_token_id"},
                                  {"eos_token", "eos_token_id"},
                                  {"pad_token", "padding_token_id"},
                                  {"unk_token", "unknown_token_id"}}) {
    const GgufValue* value = value_of(file, key);
    const auto id = value == nullptr ? std::nullopt : value->as_int();
    const bool known = id && *id >= 0 && static_cast<std::size_t>(*id) < tokens.size();
    json[name] =
        known ? ordered_json(std::string(*tokens[static_cast<std::size_t>(*id)].as_string())) : ordered_json(nullptr);
  }
  const GgufValue* chat = file.value("tokenizer.chat_template");
  if (chat == nullptr || !chat->as_string()) return json;
  if (!is_utf8(*chat->as_string())) return Status::error("tokenizer.chat_template is not UTF-8; is the file whole?");
  json["chat_template"] = std::string(*chat->as_string());
  return json;
}

Status copy_text_files(const fs::path& from, const fs::path& to) {
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json",
                           "generation_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
                           "merges.txt", "tokenizer.model"}) {
    std::error_code error;
    if (!fs::is_regular_file(from / name, error)) continue;
    fs::copy_file(from / name, to / name, error);
    if (error) return Status::error("{} cannot be copied ({})", (from / name).string(), error.message());
  }
  return Status::ok();
}

}  // namespace steadfast
