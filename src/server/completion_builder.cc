// text_completion, whole and in chunks (both have the same object name).
#include "server/reply_builder.h"

namespace steadfast {

namespace {

class CompletionBuilder : public ReplyBuilder {
 public:
  CompletionBuilder(ReplyHead head, int choices, const Tokenizer* tokenizer, CompletionForm form)
      : ReplyBuilder(std::move(head), choices), logprobs_(form.top_logprobs >= 0) {
    for (int i = 0; i < choices; ++i) {
      const std::string echo =
          form.echo.empty() ? "" : form.echo[static_cast<std::size_t>(i / form.choices_per_prompt)];
      states_.push_back({echo, echo, LegacyLogprobs(tokenizer, form.top_logprobs, count_characters(echo)), false});
    }
  }

  std::vector<Json> opening() const override {
    std::vector<Json> chunks;
    for (std::size_t i = 0; i < choices(); ++i) {
      if (!states_[i].echo.empty()) chunks.push_back(chunk(Json::array({choice_json(i, states_[i].echo)})));
    }
    return chunks;
  }

  std::vector<Json> stream(const ReplyEvent& event) override {
    State& state = absorb(event);
    const auto index = static_cast<std::size_t>(event.choice);
    if (event.piece.text.empty() && !event.end) return {};
    Json choice = choice_json(index, event.piece.text);
    if (logprobs_ && state.has_logprobs) {
      choice["logprobs"] = state.logprobs.take();
      state.has_logprobs = false;
    }
    if (!event.end) return {chunk(Json::array({std::move(choice)}))};
    choice["finish_reason"] = total(event.choice).finish;
    Json last = chunk(Json::array({std::move(choice)}));
    last["steadfast"] = receipt(event.choice);
    return {std::move(last)};
  }

  void collect(const ReplyEvent& event) override { absorb(event).text += event.piece.text; }

  Json whole() override {
    Json list = Json::array();
    for (std::size_t i = 0; i < choices(); ++i) {
      Json choice = choice_json(i, states_[i].text);
      if (logprobs_) choice["logprobs"] = states_[i].logprobs.take();
      choice["finish_reason"] = total(static_cast<int>(i)).finish;
      list.push_back(std::move(choice));
    }
    Json out = chunk(std::move(list));
    out["usage"] = usage();
    out["steadfast"] = receipts();
    return out;
  }

  Json chunk(Json choices) const override {
    return {{"id", head_.id},
            {"object", "text_completion"},
            {"created", head_.created},
            {"model", head_.model},
            {"choices", std::move(choices)}};
  }

 private:
  struct State {
    std::string echo, text;
    LegacyLogprobs logprobs;
    bool has_logprobs;
  };

  State& absorb(const ReplyEvent& event) {
    State& state = states_[static_cast<std::size_t>(event.choice)];
    Total& sum = total(event.choice);
    sum.ids.insert(sum.ids.end(), event.piece.ids.begin(), event.piece.ids.end());
    for (const TokenLogprob& one : event.piece.logprobs) {
      state.logprobs.add(one);
      state.has_logprobs = true;
    }
    if (event.end) {
      sum.finish = to_string(event.end->reason);
      sum.path = event.end->path;
    }
    return state;
  }

  static Json choice_json(std::size_t index, const std::string& text) {
    return {{"index", index}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  }

  bool logprobs_;
  std::vector<State> states_;
};

}  // namespace

std::unique_ptr<ReplyBuilder> make_completion_builder(ReplyHead head, int choices, const Tokenizer* tokenizer,
                                                      CompletionForm form) {
  return std::make_unique<CompletionBuilder>(std::move(head), choices, tokenizer, std::move(form));
}

}  // namespace steadfast
