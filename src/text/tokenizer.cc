// Encoding and decoding: added tokens, normaliser, pre-tokeniser, BPE, and the way back.
#include "text/tokenizer.h"

#include "text/tokenizer_impl.h"
#include "text/utf8.h"

namespace steadfast {

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

void Tokenizer::Impl::encode_text(std::string_view text, const EncodeOptions& options,
                                  std::vector<TokenId>& ids) const {
  PreTokenizer::Run cut(pre_tokenizer, [&](std::string_view piece) { bpe.encode(piece, ids); });
  std::string storage;
  if (!options.match_special) return cut(normalizer.apply(text, storage));
  std::vector<TextSegment> raw, inner;
  added.find_raw(text, raw);
  for (const TextSegment& segment : raw) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
      continue;
    }
    inner.clear();
    added.find_normalized(normalizer.apply(segment.text, storage), inner);
    for (const TextSegment& part : inner) part.id >= 0 ? ids.push_back(part.id) : cut(part.text);
  }
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<TokenId> ids;
  if (valid_utf8_prefix(text) == text.size()) {
    impl_->encode_text(text, options, ids);
  } else {
    impl_->encode_text(repaired_utf8(text), options, ids);
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (!(skip_special && is_special(id))) bytes += token_bytes(id);
  }
  return valid_utf8_prefix(bytes) == bytes.size() ? bytes : repaired_utf8(bytes);
}

bool Tokenizer::contains(TokenId id) const {
  return id >= 0 && static_cast<std::size_t>(id) < impl_->tokens.size() && impl_->tokens[id].known;
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
  return contains(id) ? std::string_view(impl_->tokens[id].bytes) : std::string_view();
}

std::string_view Tokenizer::token_text(TokenId id) const {
  return contains(id) ? std::string_view(impl_->tokens[id].text) : std::string_view();
}

bool Tokenizer::is_special(TokenId id) const { return contains(id) && impl_->tokens[id].special; }

TokenId Tokenizer::added_token(std::string_view text) const {
  const auto found = impl_->added_ids.find(std::string(text));
  return found == impl_->added_ids.end() ? -1 : found->second;
}

std::size_t Tokenizer::vocab_size() const { return impl_->tokens.size(); }

std::string StreamingDetokenizer::push(TokenId id) {
  if (skip_special_ && tokenizer_->is_special(id)) return {};
  held_ += tokenizer_->token_bytes(id);
  std::string text;
  std::size_t at = 0;
  while (at < held_.size()) {
    const Utf8Step step = utf8_step(held_, at);
    if (step.unfinished) break;
    append_utf8(text, step.code);
    at += step.bytes;
  }
  held_.erase(0, at);
  return text;
}

std::string StreamingDetokenizer::finish() {
  std::string text = repaired_utf8(held_);
  held_.clear();
  return text;
}

}  // namespace steadfast
