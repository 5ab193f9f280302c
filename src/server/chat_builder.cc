// chat.completion and chat.completion.chunk.
#include "server/digest.h"
#include "server/reply_builder.h"

namespace steadfast {

namespace {

class ChatBuilder : public ReplyBuilder {
 public:
  ChatBuilder(ReplyHead head, int choices, const Tokenizer* tokenizer, ChatForm form)
      : ReplyBuilder(std::move(head), choices), tokenizer_(tokenizer), logprobs_(form.logprobs) {
    for (int i = 0; i < choices; ++i) states_.push_back(State{OutputParser(form.output), {}, {}, {}, Json::array()});
  }

  std::vector<Json> opening() const override {
    std::vector<Json> chunks;
    for (std::size_t i = 0; i < choices(); ++i) {
      chunks.push_back(
          chunk(Json::array({choice_json(static_cast<int>(i), {{"role", "assistant"}, {"content", ""}})})));
    }
    return chunks;
  }

  std::vector<Json> stream(const ReplyEvent& event) override {
    std::vector<Json> chunks;
    State& state = states_[static_cast<std::size_t>(event.choice)];
    const int before = state.calls_told;
    const OutputDelta delta = absorb(event);
    Json message = Json::object();
    if (!delta.reasoning.empty()) message["reasoning_content"] = delta.reasoning;
    if (!delta.content.empty()) message["content"] = delta.content;
    if (!delta.calls.empty()) {
      Json calls = Json::array();
      for (std::size_t i = 0; i < delta.calls.size(); ++i) {
        const int index = before + static_cast<int>(i);
        Json call = {{"index", index}};
        call.update(call_json(event.choice, index, delta.calls[i]));
        calls.push_back(std::move(call));
      }
      message["tool_calls"] = std::move(calls);
    }
    if (!message.empty() || (event.end && !state.logprobs.empty())) {
      Json choice = choice_json(event.choice, std::move(message));
      if (logprobs_) choice["logprobs"] = take_logprobs(state);
      chunks.push_back(chunk(Json::array({std::move(choice)})));
    }
    if (event.end) {
      Json choice = choice_json(event.choice, Json::object());
      choice["finish_reason"] = total(event.choice).finish;
      Json last = chunk(Json::array({std::move(choice)}));
      last["steadfast"] = receipt(event.choice);
      chunks.push_back(std::move(last));
    }
    return chunks;
  }

  void collect(const ReplyEvent& event) override {
    State& state = states_[static_cast<std::size_t>(event.choice)];
    OutputDelta delta = absorb(event);
    state.reasoning += delta.reasoning;
    state.content += delta.content;
    for (ToolCall& call : delta.calls) state.calls.push_back(std::move(call));
  }

  Json whole() override {
    Json list = Json::array();
    for (std::size_t i = 0; i < choices(); ++i) {
      State& state = states_[i];
      const int index = static_cast<int>(i);
      Json message = {{"role", "assistant"}, {"content", nullptr}, {"refusal", nullptr}};
      if (!state.content.empty() || state.calls.empty()) message["content"] = state.content;
      if (!state.reasoning.empty()) message["reasoning_content"] = state.reasoning;
      if (!state.calls.empty()) {
        Json calls = Json::array();
        for (std::size_t c = 0; c < state.calls.size(); ++c) {
          calls.push_back(call_json(index, static_cast<int>(c), state.calls[c]));
        }
        message["tool_calls"] = std::move(calls);
      }
      list.push_back({{"index", i},
                      {"message", std::move(message)},
                      {"logprobs", logprobs_ ? take_logprobs(state) : Json(nullptr)},
                      {"finish_reason", total(index).finish}});
    }
    return {{"id", head_.id},         {"object", "chat.completion"}, {"created", head_.created},
            {"model", head_.model},   {"choices", std::move(list)},  {"usage", usage()},
            {"steadfast", receipts()}};
  }

  Json chunk(Json choices) const override {
    return {{"id", head_.id},
            {"object", "chat.completion.chunk"},
            {"created", head_.created},
            {"model", head_.model},
            {"choices", std::move(choices)}};
  }

 private:
  struct State {
    OutputParser parser;
    std::string reasoning, content;  // of the whole
    std::vector<ToolCall> calls;
    Json logprobs;  // not told yet
    int calls_told = 0;
  };

  OutputDelta absorb(const ReplyEvent& event) {
    State& state = states_[static_cast<std::size_t>(event.choice)];
    Total& sum = total(event.choice);
    sum.ids.insert(sum.ids.end(), event.piece.ids.begin(), event.piece.ids.end());
    if (logprobs_) {
      for (const TokenLogprob& one : event.piece.logprobs) state.logprobs.push_back(chat_logprob(tokenizer_, one));
    }
    OutputDelta delta = state.parser.push(event.piece.text);
    if (event.end) {
      OutputDelta rest = state.parser.finish();
      delta.reasoning += rest.reasoning;
      delta.content += rest.content;
      for (ToolCall& call : rest.calls) delta.calls.push_back(std::move(call));
    }
    state.calls_told += static_cast<int>(delta.calls.size());
    if (event.end) {
      const bool called = event.end->reason == FinishReason::kStop && state.calls_told > 0;
      sum.path = event.end->path;
      sum.finish = called ? "tool_calls" : to_string(event.end->reason);
    }
    return delta;
  }

  static Json take_logprobs(State& state) {
    Json out = {{"content", std::move(state.logprobs)}, {"refusal", nullptr}};
    state.logprobs = Json::array();
    return out;
  }

  Json choice_json(int index, Json delta) const {
    return {{"index", index}, {"delta", std::move(delta)}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  }

  // The call's id follows from the request, so that a resent request gives the same reply.
  Json call_json(int choice, int index, const ToolCall& call) const {
    const std::string digest = request_digest(head_.receipts[static_cast<std::size_t>(choice)].content);
    const std::string id = hex(sha256(fmt::format("{}/{}", digest, index))).substr(0, 24);
    return {
        {"id", "call_" + id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
  }

  const Tokenizer* tokenizer_;
  bool logprobs_;
  std::vector<State> states_;
};

}  // namespace

std::unique_ptr<ReplyBuilder> make_chat_builder(ReplyHead head, int choices, const Tokenizer* tokenizer,
                                                ChatForm form) {
  return std::make_unique<ChatBuilder>(std::move(head), choices, tokenizer, std::move(form));
}

}  // namespace steadfast
