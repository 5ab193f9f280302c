// Byte-level BPE tokenizer: text to ids and back, as Hugging Face tokenizers do it.
// Source: model-spec section 6; tokenizer.json or GGUF metadata. Immutable after loading: safe to share between
// threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace steadfast {

class GgufFile;
using TokenId = std::int32_t;

struct EncodeOptions {
  // false: the text is untrusted; no added token is looked for in it, special or not, and "<|im_end|>" is plain text.
  bool match_special = true;
};

class Tokenizer {
 public:
  // Folder with tokenizer.json (tokenizer_config.json beside it is optional).
  static Result<Tokenizer> from_folder(const std::filesystem::path& folder);
  static Result<Tokenizer> from_json(std::string_view tokenizer_json);
  static Result<Tokenizer> from_gguf(const GgufFile& file);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Adds no token that the text does not have (no BOS). Invalid UTF-8 is read as U+FFFD, one a maximal subpart.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Invalid UTF-8 becomes U+FFFD. Ids outside the vocabulary are an error of the caller: see contains().
  std::string decode(std::span<const TokenId> ids, bool skip_special = true) const;
  // The bytes that one id stands for (may be part of a character); empty for an id outside the vocabulary.
  std::string_view token_bytes(TokenId id) const;
  // The token as its vocabulary writes it, for example "Ġthe" or "<|im_end|>".
  std::string_view token_text(TokenId id) const;
  bool contains(TokenId id) const;
  bool is_special(TokenId id) const;  // dropped by decode(skip_special)
  // Id of an added token's exact text, -1 where there is none.
  TokenId added_token(std::string_view text) const;
  std::size_t vocab_size() const;  // largest id + 1

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Turns ids into text as they come, never splitting a character: bytes of an unfinished one are held back.
class StreamingDetokenizer {
 public:
  explicit StreamingDetokenizer(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}
  std::string push(TokenId id);  // text that is now certain, maybe empty
  std::string finish();          // what is held back, an unfinished character as U+FFFD

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string held_;
};

}  // namespace steadfast
