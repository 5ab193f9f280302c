// What all replies share: their head, log-probabilities and usage in OpenAI's forms (model-spec 9.5), server-sent
// events.
#pragma once

#include <string>
#include <vector>

#include "engine/service.h"
#include "server/api_error.h"
#include "server/receipt.h"

namespace steadfast {

struct ReplyHead {
  std::string id;  // "chatcmpl-..." or "cmpl-..."
  std::int64_t created = 0;
  std::string model;
  int prompt_tokens = 0;
  std::vector<Receipt> receipts;  // one a choice
};

// The id's text as a client sees it: special tokens by name, bytes that are not UTF-8 as U+FFFD; without a tokenizer
// "token_id:N".
std::string token_string(const Tokenizer* tokenizer, TokenId id);

// One entry of chat's logprobs.content: {"token", "logprob", "bytes", "top_logprobs"}.
Json chat_logprob(const Tokenizer* tokenizer, const TokenLogprob& logprob);

// The legacy form: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. The offset counts characters.
class LegacyLogprobs {
 public:
  LegacyLogprobs(const Tokenizer* tokenizer, int top, std::size_t offset)
      : tokenizer_(tokenizer), top_(top), offset_(offset) {}
  void add(const TokenLogprob& logprob);
  Json take();  // what was added since the last time

 private:
  const Tokenizer* tokenizer_;
  int top_;
  std::size_t offset_;
  Json tokens_ = Json::array(), values_ = Json::array(), tops_ = Json::array(), offsets_ = Json::array();
};

Json usage_json(int prompt_tokens, int completion_tokens);
std::string event_text(const Json& chunk);  // "data: ...\n\n"
inline constexpr std::string_view kLastEvent = "data: [DONE]\n\n";

std::size_t count_characters(std::string_view text);

// The error of a reply that ended with kError or kCancelled.
ApiError end_error(const ReplyEnd& end);

}  // namespace steadfast
