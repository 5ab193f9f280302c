// Reader of tokenizer.json: byte-level BPE, nothing else. What the file asks for and we do not do is an error that
// names it; post-processors (they add tokens round a text) and truncation are left to the caller.
#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "text/tokenizer_impl.h"
#include "text/utf8.h"

namespace steadfast {
namespace {

using nlohmann::json;

constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{512} << 20;
constexpr int kMaxNesting = 16;

// Typed fields of one JSON object. The first thing that is wrong stays in status(); later reads give defaults.
class Fields {
 public:
  Fields(const json& object, std::string name) : object_(object), name_(std::move(name)) {
    if (!object.is_object()) fail("is not an object");
  }
  const Status& status() const { return status_; }

  // nullptr: absent, or null.
  const json* child(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  bool flag(const char* key, bool otherwise) {
    const json* value = child(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail(fmt::format("needs true or false for \"{}\"", key));
    return value->is_boolean() ? value->get<bool>() : otherwise;
  }
  std::string text(const char* key) {  // "" where absent
    const json* value = child(key);
    if (value == nullptr) return {};
    if (!value->is_string()) fail(fmt::format("needs a string for \"{}\"", key));
    return value->is_string() ? value->get<std::string>() : std::string();
  }
  TokenId id(const char* key) {
    const json* value = child(key);
    const bool fits = value != nullptr && value->is_number_unsigned() &&
                      value->get<std::uint64_t>() <= std::numeric_limits<TokenId>::max();
    if (!fits) fail(fmt::format("needs a token id for \"{}\"", key));
    return fits ? value->get<TokenId>() : -1;
  }
  void fail(const std::string& what) {
    if (status_) status_ = Status::error("{} {}", name_, what);
  }

 private:
  const json& object_;
  std::string name_;
  Status status_;
};

Status unsupported(std::string_view what, const std::string& type, std::string_view known) {
  return Status::error("{} of type \"{}\" is not supported (supported: {}): use a model with byte-level BPE", what,
                       repaired_utf8(type.substr(0, 80)), known);
}

Status read_normalizer(const json& value, int nesting, Normalizer& out) {
  if (nesting > kMaxNesting) return Status::error("the normalizer is nested more than {} deep", kMaxNesting);
  Fields fields(value, "the normalizer");
  const std::string type = fields.text("type");
  if (!fields.status()) return fields.status();
  if (type == "NFC") {
    out.nfc = true;
    return Status::ok();
  }
  if (type != "Sequence") return unsupported("a normalizer", type, "NFC, Sequence");
  const json* list = fields.child("normalizers");
  if (list == nullptr || !list->is_array()) return Status::error("a Sequence of normalizers needs its list");
  for (const json& item : *list) {
    if (auto status = read_normalizer(item, nesting + 1, out); !status) return status;
  }
  return Status::ok();
}

Result<SplitBehavior> behavior_of(const std::string& name) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return Status::error("a Split of behavior \"{}\" is not known", repaired_utf8(name.substr(0, 80)));
}

Result<SplitStep> read_split(Fields& fields) {
  const json* pattern = fields.child("pattern");
  if (pattern == nullptr) return Status::error("a Split needs a pattern");
  Fields inner(*pattern, "a Split's pattern");
  const std::string regex = inner.text("Regex"), literal = inner.text("String");
  auto behavior = behavior_of(fields.text("behavior"));
  const bool invert = fields.flag("invert", false);
  if (!inner.status()) return inner.status();
  if (!fields.status()) return fields.status();
  if (!behavior) return behavior.status();
  auto compiled = regex.empty() ? Regex::literal(literal) : Regex::compile(regex);
  if (!compiled) return Status::error("a Split cannot be read: {}", compiled.message());
  return SplitStep{std::move(*compiled), *behavior, invert};
}

struct PreTokenizerReader {
  PreTokenizer result;
  bool byte_level = false;  // seen; nothing may follow, for it turns text into the byte alphabet

  Status read(const json& value, int nesting) {
    if (nesting > kMaxNesting) return Status::error("the pre-tokenizer is nested more than {} deep", kMaxNesting);
    Fields fields(value, "the pre-tokenizer");
    const std::string type = fields.text("type");
    if (!fields.status()) return fields.status();
    if (type == "Sequence") return read_sequence(fields, nesting);
    if (byte_level) return Status::error("a pre-tokenizer behind ByteLevel is not supported");
    if (type == "ByteLevel") return read_byte_level(fields);
    if (type == "Digits") {
      const bool individual = fields.flag("individual_digits", false);
      return fields.status() ? result.add(DigitsStep{individual}) : fields.status();
    }
    if (type == "Split") {
      auto split = read_split(fields);
      return split ? result.add(std::move(*split)) : split.status();
    }
    return unsupported("a pre-tokenizer", type, "Split, Digits, ByteLevel, Sequence");
  }

  Status read_sequence(Fields& fields, int nesting) {
    const json* list = fields.child("pretokenizers");
    if (list == nullptr || !list->is_array()) return Status::error("a Sequence of pre-tokenizers needs its list");
    for (const json& item : *list) {
      if (auto status = read(item, nesting + 1); !status) return status;
    }
    return Status::ok();
  }

  Status read_byte_level(Fields& fields) {
    const bool prefix = fields.flag("add_prefix_space", true), use_regex = fields.flag("use_regex", true);
    if (!fields.status()) return fields.status();
    byte_level = true;
    if (prefix) {
      if (auto status = result.add(PrefixSpaceStep{}); !status) return status;
    }
    if (!use_regex) return Status::ok();
    auto regex = PreTokenizer::gpt2_regex();
    return regex ? result.add(SplitStep{std::move(*regex)}) : regex.status();
  }
};

Status read_decoder(const json& value) {
  Fields fields(value, "the decoder");
  const std::string type = fields.text("type");
  if (!fields.status()) return fields.status();
  return type == "ByteLevel" ? Status::ok() : unsupported("a decoder", type, "ByteLevel");
}

Status read_vocabulary(const json* vocabulary, TokenizerSpec& spec) {
  if (vocabulary == nullptr || !vocabulary->is_object()) return Status::error("the model needs its vocab, an object");
  spec.vocabulary.reserve(vocabulary->size());
  for (const auto& [text, id] : vocabulary->items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > std::numeric_limits<TokenId>::max()) {
      return Status::error("token \"{}\" of the vocabulary has no proper id", text.substr(0, 80));
    }
    spec.vocabulary.push_back({text, id.get<TokenId>()});
  }
  return Status::ok();
}

Status read_merges(const json* merges, TokenizerSpec& spec) {
  if (merges == nullptr || !merges->is_array()) return Status::error("the model needs its merges, a list");
  spec.merges.reserve(merges->size());
  for (const json& merge : *merges) {
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
        return Status::error("merge {} is not two tokens with a space between them", spec.merges.size());
      }
      spec.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      spec.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else {
      return Status::error("merge {} is neither a string nor a pair of strings", spec.merges.size());
    }
  }
  return Status::ok();
}

Status read_model(const json& value, TokenizerSpec& spec) {
  Fields fields(value, "the model");
  const std::string type = fields.text("type");
  if (!fields.status()) return fields.status();
  if (type != "BPE" && !type.empty()) return unsupported("a model", type, "BPE");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!fields.text(key).empty()) return Status::error("the model's {} is not supported", key);
  }
  if (fields.flag("byte_fallback", false)) return Status::error("the model's byte_fallback is not supported");
  if (const json* dropout = fields.child("dropout"); dropout != nullptr && *dropout != 0) {
    return Status::error("the model's dropout is not supported");
  }
  spec.unknown = fields.text("unk_token");
  spec.fuse_unknown = fields.flag("fuse_unk", false);
  spec.ignore_merges = fields.flag("ignore_merges", false);
  if (!fields.status()) return fields.status();
  if (auto status = read_vocabulary(fields.child("vocab"), spec); !status) return status;
  return read_merges(fields.child("merges"), spec);
}

Result<AddedToken> read_added_token(const json& value) {
  Fields fields(value, "an added token");
  AddedToken token{.id = fields.id("id"), .text = fields.text("content")};
  token.special = fields.flag("special", false);
  token.single_word = fields.flag("single_word", false);
  token.lstrip = fields.flag("lstrip", false);
  token.rstrip = fields.flag("rstrip", false);
  token.normalized = fields.flag("normalized", !token.special);
  if (!fields.status()) return fields.status();
  return token;
}

Result<TokenizerSpec> read_spec(const json& root) {
  TokenizerSpec spec;
  Fields fields(root, "the file");
  if (!fields.status()) return fields.status();
  const json* model = fields.child("model");
  if (model == nullptr) return Status::error("the file has no model");
  if (auto status = read_model(*model, spec); !status) return status;
  if (const json* normalizer = fields.child("normalizer")) {
    if (auto status = read_normalizer(*normalizer, 0, spec.normalizer); !status) return status;
  }
  PreTokenizerReader reader;
  if (const json* pre_tokenizer = fields.child("pre_tokenizer")) {
    if (auto status = reader.read(*pre_tokenizer, 0); !status) return status;
  }
  if (!reader.byte_level) return Status::error("the pre-tokenizer has no ByteLevel: only byte-level BPE is supported");
  spec.pre_tokenizer = std::move(reader.result);
  if (const json* decoder = fields.child("decoder")) {
    if (auto status = read_decoder(*decoder); !status) return status;
  }
  if (const json* added = fields.child("added_tokens")) {
    if (!added->is_array()) return Status::error("added_tokens is not a list");
    for (const json& item : *added) {
      auto token = read_added_token(item);
      if (!token) return token.status();
      spec.added.push_back(std::move(*token));
    }
  }
  return spec;
}

Result<json> parse(std::string_view text, std::string_view name) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    return Status::error("{} is not valid JSON (at byte {}): fetch the file again", name, error.byte);
  } catch (const json::exception&) {  // a number that no type holds
    return Status::error("{} is not valid JSON: fetch the file again", name);
  }
}

Result<std::string> read_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return Status::error("{} cannot be read: {}", path.string(), error.message());
  if (size > kMaxFileBytes)
    return Status::error("{} has {} bytes; no tokenizer file is that large", path.string(), size);
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    return Status::error("{} cannot be read: check its permissions", path.string());
  }
  return text;
}

// Tokens that only tokenizer_config.json has, as transformers adds them.
Status add_configured_tokens(const json& config, TokenizerSpec& spec) {
  Fields fields(config, "tokenizer_config.json");
  const json* decoder = fields.child("added_tokens_decoder");
  if (decoder == nullptr || !decoder->is_object()) return fields.status();
  for (const auto& [key, value] : decoder->items()) {
    if (!value.is_object()) return Status::error("added_tokens_decoder[\"{}\"] is not an object", key.substr(0, 80));
    json with_id = value;
    const bool digits = !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) return Status::error("added_tokens_decoder has \"{}\" where an id should be", key.substr(0, 80));
    with_id["id"] = std::stoul(key);
    auto token = read_added_token(with_id);
    if (!token) return token.status();
    const bool known = std::any_of(spec.added.begin(), spec.added.end(),
                                   [&](const AddedToken& other) { return other.text == token->text; });
    if (!known) spec.added.push_back(std::move(*token));
  }
  return Status::ok();
}

}  // namespace

Result<Tokenizer> Tokenizer::from_json(std::string_view tokenizer_json) {
  auto root = parse(tokenizer_json, "tokenizer.json");
  if (!root) return root.status();
  auto spec = read_spec(*root);
  if (!spec) return spec.status();
  auto impl = Impl::build(std::move(*spec));
  if (!impl) return impl.status();
  return Tokenizer(std::move(*impl));
}

Result<Tokenizer> Tokenizer::from_folder(const std::filesystem::path& folder) {
  const auto path = folder / "tokenizer.json";
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Status::error("{} has no tokenizer.json: give a folder that has one, or a GGUF file", folder.string());
  }
  auto text = read_file(path);
  if (!text) return text.status();
  auto root = parse(*text, path.string());
  if (!root) return root.status();
  auto spec = read_spec(*root);
  if (!spec) return Status::error("{}: {}", path.string(), spec.message());
  const auto config_path = folder / "tokenizer_config.json";
  if (std::filesystem::is_regular_file(config_path, error)) {
    auto config_text = read_file(config_path);
    if (!config_text) return config_text.status();
    auto config = parse(*config_text, config_path.string());
    if (!config) return config.status();
    if (auto status = add_configured_tokens(*config, *spec); !status) {
      return Status::error("{}: {}", config_path.string(), status.message());
    }
  }
  auto impl = Impl::build(std::move(*spec));
  if (!impl) return Status::error("{}: {}", path.string(), impl.message());
  return Tokenizer(std::move(*impl));
}

}  // namespace steadfast
