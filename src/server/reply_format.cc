// Clamped log-probabilities and token texts.
#include "server/reply_format.h"

#include <algorithm>

#include "server/api_error.h"
#include "text/utf8.h"

namespace steadfast {

namespace {

// JSON has no infinity; -9999 stands for it, as in vLLM.
Json clamped(float logprob) { return shortest(std::max(logprob, -9999.0f)); }

// The legacy form names tokens by their text in an object, so different tokens must not share one.
std::string legacy_string(const Tokenizer* tokenizer, TokenId id) {
  if (tokenizer == nullptr) return token_string(tokenizer, id);
  const std::string_view bytes = tokenizer->token_bytes(id);
  if (valid_utf8_prefix(bytes) == bytes.size()) return std::string(bytes);
  std::string out = "bytes:";
  for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return out;
}

Json byte_list(std::string_view bytes) {
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

Json chat_entry(const Tokenizer* tokenizer, TokenId id, float logprob) {
  Json entry = {{"token", token_string(tokenizer, id)}, {"logprob", clamped(logprob)}, {"bytes", nullptr}};
  if (tokenizer != nullptr) entry["bytes"] = byte_list(tokenizer->token_bytes(id));
  return entry;
}

}  // namespace

std::string token_string(const Tokenizer* tokenizer, TokenId id) {
  if (tokenizer == nullptr) return fmt::format("token_id:{}", id);
  return repaired_utf8(tokenizer->token_bytes(id));
}

Json chat_logprob(const Tokenizer* tokenizer, const TokenLogprob& logprob) {
  Json entry = chat_entry(tokenizer, logprob.id, logprob.logprob);
  Json top = Json::array();
  for (const auto& [id, value] : logprob.top) top.push_back(chat_entry(tokenizer, id, value));
  entry["top_logprobs"] = std::move(top);
  return entry;
}

void LegacyLogprobs::add(const TokenLogprob& logprob) {
  const std::string text = legacy_string(tokenizer_, logprob.id);
  Json top = Json::object();
  for (const auto& [id, value] : logprob.top) top[legacy_string(tokenizer_, id)] = clamped(value);
  if (top_ > 0) top[text] = clamped(logprob.logprob);
  tokens_.push_back(text);
  values_.push_back(clamped(logprob.logprob));
  tops_.push_back(top_ > 0 ? std::move(top) : Json(nullptr));
  offsets_.push_back(offset_);
  offset_ += count_characters(token_string(tokenizer_, logprob.id));
}

Json LegacyLogprobs::take() {
  Json out = {{"tokens", std::move(tokens_)},
              {"token_logprobs", std::move(values_)},
              {"top_logprobs", std::move(tops_)},
              {"text_offset", std::move(offsets_)}};
  tokens_ = values_ = tops_ = offsets_ = Json::array();
  return out;
}

Json usage_json(int prompt_tokens, int completion_tokens) {
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", completion_tokens},
          {"total_tokens", prompt_tokens + completion_tokens}};
}

std::string event_text(const Json& chunk) { return "data: " + json_text(chunk) + "\n\n"; }

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

ApiError end_error(const ReplyEnd& end) {
  if (end.reason == FinishReason::kCancelled)
    return {503, "the reply was cancelled: the server is stopping", "", "cancelled"};
  return {500, "the engine failed on this reply; the server's log says more", "", "engine_error"};
}

}  // namespace steadfast
