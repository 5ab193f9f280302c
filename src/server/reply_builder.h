// One request's replies, event by event, as the chunks of a stream or as one whole: both from the same events, so that
// they say the same. Two forms: chat completions and legacy completions.
#pragma once

#include <memory>
#include <optional>

#include "server/output_parser.h"
#include "server/reply_format.h"
#include "server/reply_queue.h"

namespace steadfast {

class ReplyBuilder {
 public:
  ReplyBuilder(ReplyHead head, int choices) : head_(std::move(head)), totals_(static_cast<std::size_t>(choices)) {}
  virtual ~ReplyBuilder() = default;

  virtual std::vector<Json> opening() const { return {}; }        // chunks before any event
  virtual std::vector<Json> stream(const ReplyEvent& event) = 0;  // the event's chunks
  virtual void collect(const ReplyEvent& event) = 0;              // the same into the whole
  virtual Json whole() = 0;                                       // after the last event
  virtual Json chunk(Json choices) const = 0;                     // a chunk around its list of choices

  // After the last event: {"choices": [], "usage": ...}.
  Json usage_chunk() const;
  Json usage() const { return usage_json(head_.prompt_tokens, completion_tokens()); }
  int completion_tokens() const;
  int prompt_tokens() const { return head_.prompt_tokens; }
  const std::string& id() const { return head_.id; }

 protected:
  struct Total {
    std::vector<TokenId> ids;
    std::string finish;
    ReplyPath path;
  };
  Json receipt(int choice) const;
  // The field "steadfast": the receipt, or {"choices": [receipts]} where there are several.
  Json receipts() const;
  Total& total(int choice) { return totals_[static_cast<std::size_t>(choice)]; }
  std::size_t choices() const { return totals_.size(); }

  ReplyHead head_;

 private:
  std::vector<Total> totals_;
};

struct ChatForm {
  bool logprobs = false;
  OutputOptions output;
};

std::unique_ptr<ReplyBuilder> make_chat_builder(ReplyHead head, int choices, const Tokenizer* tokenizer, ChatForm form);

struct CompletionForm {
  int top_logprobs = -1;
  int choices_per_prompt = 1;
  std::vector<std::string> echo;  // the prompts' texts; empty: none
};

std::unique_ptr<ReplyBuilder> make_completion_builder(ReplyHead head, int choices, const Tokenizer* tokenizer,
                                                      CompletionForm form);

}  // namespace steadfast
