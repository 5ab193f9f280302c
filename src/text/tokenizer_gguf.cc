// Reader of the tokenizer in a GGUF file's metadata (model-spec 4.5): byte-level BPE with a known pre-tokeniser.
// Qwen's own tokenizers normalise to NFC, which GGUF has no key for: pre "qwen2" and "qwen35" do it here too, so that
// a model reads a text alike from either kind of file.
#include "formats/gguf.h"

#include <limits>

#include "text/tokenizer_impl.h"

namespace steadfast {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

enum TokenType : std::int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5 };

const GgufValue* value_of(const GgufFile& file, std::string_view key) {
  return file.value(std::string(kPrefix) + std::string(key));
}

Result<std::string_view> text_of(const GgufFile& file, std::string_view key) {
  const GgufValue* value = value_of(file, key);
  const auto text = value == nullptr ? std::nullopt : value->as_string();
  if (!text) return Status::error("the GGUF file has no text for {}{}: convert the model again", kPrefix, key);
  return *text;
}

Result<const GgufArray*> array_of(const GgufFile& file, std::string_view key) {
  const GgufValue* value = value_of(file, key);
  const GgufArray* array = value == nullptr ? nullptr : value->as_array();
  if (array == nullptr) return Status::error("the GGUF file has no list {}{}: convert the model again", kPrefix, key);
  return array;
}

Status read_tokens(const GgufArray& tokens, const GgufArray* types, TokenizerSpec& spec) {
  if (types != nullptr && types->size() != tokens.size()) {
    return Status::error("the GGUF file has {} tokens but {} token types", tokens.size(), types->size());
  }
  if (tokens.size() > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    return Status::error("the GGUF file has {} tokens", tokens.size());
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto text = tokens[i].as_string();
    if (!text) return Status::error("token {} of the GGUF file is not a string", i);
    const auto type = types == nullptr ? std::optional<std::int64_t>(kNormal) : (*types)[i].as_int();
    const auto id = static_cast<TokenId>(i);
    switch (type.value_or(0)) {
      case kNormal:
        spec.vocabulary.push_back({std::string(*text), id});
        break;
      case kUnknown:
      case kControl:
      case kUserDefined: {
        AddedToken token{.id = id, .text = std::string(*text)};
        token.special = type != kUserDefined;
        spec.added.push_back(std::move(token));
        break;
      }
      case kUnused:
        spec.unused.push_back({std::string(*text), id});
        break;
      default:
        return Status::error("token {} of the GGUF file has type {}, which byte-level BPE does not have", i,
                             type.value_or(0));
    }
  }
  return Status::ok();
}

Status read_merges(const GgufArray& merges, TokenizerSpec& spec) {
  spec.merges.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto text = merges[i].as_string();
    // The space is searched from the second byte on: a token may begin with one, as llama.cpp allows.
    const std::size_t space = text && !text->empty() ? text->find(' ', 1) : std::string_view::npos;
    if (space == std::string_view::npos) {
      return Status::error("merge {} of the GGUF file is not two tokens with a space between them", i);
    }
    spec.merges.emplace_back(text->substr(0, space), text->substr(space + 1));
  }
  return Status::ok();
}

}  // namespace

Result<Tokenizer> Tokenizer::from_gguf(const GgufFile& file) {
  const auto model = text_of(file, "model");
  if (!model) return model.status();
  if (*model != "gpt2") {
    return Status::error("the GGUF file's tokenizer is \"{}\"; only \"gpt2\" (byte-level BPE) is supported",
                         model->substr(0, 80));
  }
  const auto pre = text_of(file, "pre");
  if (!pre) return pre.status();
  TokenizerSpec spec;
  auto pre_tokenizer = PreTokenizer::of_gguf(*pre);
  if (!pre_tokenizer) return pre_tokenizer.status();
  spec.pre_tokenizer = std::move(*pre_tokenizer);
  spec.normalizer.nfc = pre->starts_with("qwen");
  spec.ignore_merges = pre->starts_with("llama");
  const auto tokens = array_of(file, "tokens");
  if (!tokens) return tokens.status();
  const auto merges = array_of(file, "merges");
  if (!merges) return merges.status();
  const GgufValue* types = value_of(file, "token_type");
  if (types != nullptr && types->as_array() == nullptr) {
    return Status::error("the GGUF file's {}token_type is not a list: convert the model again", kPrefix);
  }
  if (auto status = read_tokens(**tokens, types == nullptr ? nullptr : types->as_array(), spec); !status) return status;
  if (auto status = read_merges(**merges, spec); !status) return status;
  auto impl = Impl::build(std::move(spec));
  if (!impl) return Status::error("the GGUF file's tokenizer: {}", impl.message());
  return Tokenizer(std::move(*impl));
}

}  // namespace steadfast
