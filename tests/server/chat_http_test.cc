// Chat completions over HTTP: whole and streamed replies, choices, reasoning, tools, log-probabilities.
#include <set>

#include "harness.h"
#include "server/digest.h"

namespace steadfast::testing {
namespace {

constexpr const char* kPath = "/v1/chat/completions";

// A stream's chunks put together again into the form of a whole reply, choice by choice.
Json joined(const std::vector<Json>& chunks) {
  std::map<int, Json> choices;
  for (const Json& chunk : chunks) {
    for (const Json& part : chunk["choices"]) {
      Json& choice = choices[part["index"].get<int>()];
      if (choice.is_null()) choice = {{"message", Json::object()}, {"logprobs", Json::array()}};
      for (const auto& [key, value] : part["delta"].items()) {
        Json& message = choice["message"];
        if (value.is_string() && key != "role") {
          message[key] = message.value(key, "") + value.get<std::string>();
        } else if (value.is_array()) {
          for (Json call : value) {
            EXPECT_EQ(call["index"].get<std::size_t>(), message.contains(key) ? message[key].size() : 0U);
            call.erase("index");
            message[key].push_back(call);
          }
        } else {
          message[key] = value;
        }
      }
      if (!part["logprobs"].is_null()) {
        for (const Json& one : part["logprobs"]["content"]) choice["logprobs"].push_back(one);
      }
      if (!part["finish_reason"].is_null()) {
        choice["finish_reason"] = part["finish_reason"];
        choice["receipt"] = chunk["steadfast"];
      }
    }
  }
  Json out = Json::array();
  for (auto& [index, choice] : choices) out.push_back(choice);
  return out;
}

class ChatTest : public HttpTest {
 protected:
  // Sends the request whole and streamed and expects the same; returns the whole.
  Json both(Json body) {
    const Reply whole = post(kPath, body);
    EXPECT_EQ(whole.status, 200) << whole.body;
    body["stream"] = true;
    const Reply streamed = post(kPath, body);
    EXPECT_EQ(streamed.status, 200) << streamed.body;
    EXPECT_EQ(httplib::detail::get_header_value(streamed.headers, "Content-Type", 0, ""),
              std::string("text/event-stream"));
    const Json reply = whole.json();
    Json parts = joined(events(streamed.body));
    EXPECT_EQ(parts.size(), reply["choices"].size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Json& choice = reply["choices"][i];
      for (const char* key : {"content", "reasoning_content", "tool_calls"}) {
        const Json part = parts[i]["message"].value(key, Json());
        const Json message = choice["message"].value(key, Json());
        EXPECT_TRUE(part == message || (part == "" && message.is_null())) << key << part << message;
      }
      EXPECT_EQ(parts[i]["finish_reason"], choice["finish_reason"]);
      if (!choice["logprobs"].is_null()) {
        EXPECT_EQ(parts[i]["logprobs"], choice["logprobs"]["content"]);
      }
      const Json& receipt =
          reply["steadfast"].contains("choices") ? reply["steadfast"]["choices"][i] : reply["steadfast"];
      Json streamed_receipt = receipt;  // the same to the byte, but for the path
      streamed_receipt.erase("index");
      for (Json* one : {&streamed_receipt, &parts[i]["receipt"]}) EXPECT_EQ(one->erase("path"), 1U);
      EXPECT_EQ(parts[i]["receipt"].dump(), streamed_receipt.dump());
    }
    return reply;
  }
};

TEST_F(ChatTest, RepliesInOpenAisForm) {
  start();
  const Json reply = both(chat("say:Hello, world é😀."));
  EXPECT_EQ(reply["object"], "chat.completion");
  EXPECT_EQ(reply["model"], "fake-model");
  EXPECT_EQ(reply["id"].get<std::string>().substr(0, 9), "chatcmpl-");
  EXPECT_GT(reply["created"].get<std::int64_t>(), 1'700'000'000);
  const Json& message = reply["choices"][0]["message"];
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_EQ(message["content"], "Hello, world é😀.");
  EXPECT_TRUE(message["refusal"].is_null());
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
  const Json& usage = reply["usage"];
  EXPECT_EQ(usage["total_tokens"].get<int>(),
            usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
  const auto said = service().tokenizer()->encode("Hello, world é😀.");
  EXPECT_EQ(usage["completion_tokens"].get<std::size_t>(), said.size() + 1);
}

TEST_F(ChatTest, TheSameRequestGetsTheSameReply) {
  start();
  const Json body = chat("Hi", {{"max_tokens", 40}});
  const Json first = both(body), second = both(body);
  EXPECT_EQ(first["choices"], second["choices"]);
  EXPECT_EQ(first["steadfast"].dump(), second["steadfast"].dump());
  EXPECT_NE(first["id"], second["id"]);
  EXPECT_NE(first["choices"], both(chat("Hi!", {{"max_tokens", 40}}))["choices"]);
}

TEST_F(ChatTest, AReceiptsSeedReplaysTheReply) {
  start();
  const Json first = both(chat("Hi", {{"max_tokens", 40}, {"n", 3}}));
  std::set<Json> contents;
  for (std::size_t i = 0; i < 3; ++i) {
    const Json again = both(chat("Hi", {{"max_tokens", 40}, {"seed", first["steadfast"]["choices"][i]["seed"]}}));
    EXPECT_EQ(again["choices"][0]["message"], first["choices"][i]["message"]);
    EXPECT_EQ(again["steadfast"]["ids_sha256"], first["steadfast"]["choices"][i]["ids_sha256"]);
    contents.insert(first["choices"][i]["message"]["content"]);
  }
  EXPECT_EQ(contents.size(), 3U);
}

TEST_F(ChatTest, TheReceiptNamesWhatWasUsed) {
  start();
  const Json reply = both(chat("Hi", {{"max_tokens", 8}, {"seed", 7}, {"temperature", 0.7}, {"top_k", -1}}));
  const Json& receipt = reply["steadfast"];
  EXPECT_EQ(receipt["model_digest"], "00ff");
  EXPECT_EQ(receipt["seed"], 7);
  EXPECT_EQ(receipt["sampling"].dump(),
            R"({"temperature":0.7,"top_k":0,"top_p":1,"min_p":0,"repetition_penalty":1,"presence_penalty":0,)"
            R"("frequency_penalty":0})");
  Request request;
  request.prompt = service().tokenizer()->encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  request.sampling.temperature = 0.7f;
  request.sampling.seed = 7;
  request.max_tokens = 8;
  EXPECT_EQ(receipt["ids_sha256"], sha256_of_ids(service().reply_to(request).ids));
}

TEST_F(ChatTest, LimitsEndReplies) {
  start();
  Json reply = both(chat("Hi", {{"max_tokens", 5}, {"ignore_eos", true}}));
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(reply["usage"]["completion_tokens"], 5);
  reply = both(chat("Hi", {{"max_tokens", 50}, {"max_completion_tokens", 6}, {"ignore_eos", true}}));
  EXPECT_EQ(reply["usage"]["completion_tokens"], 6);
}

TEST_F(ChatTest, StopStringsEndReplies) {
  start();
  EXPECT_EQ(both(chat("say:one two three", {{"stop", " tw"}}))["choices"][0]["message"]["content"], "one");
  EXPECT_EQ(both(chat("say:one two three", {{"stop", {"zzz", "thr", "ee"}}}))["choices"][0]["message"]["content"],
            "one two ");
}

TEST_F(ChatTest, UsageComesLastInAStreamWhenAskedFor) {
  start();
  const Json body = chat("say:ok", {{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  const auto chunks = events(post(kPath, body).body);
  ASSERT_GE(chunks.size(), 3U);
  EXPECT_EQ(chunks.front()["object"], "chat.completion.chunk");
  EXPECT_EQ(chunks.front()["choices"][0]["delta"]["role"], "assistant");
  EXPECT_TRUE(chunks.back()["choices"].empty());
  EXPECT_EQ(chunks.back()["usage"]["completion_tokens"], 3);
  for (const Json& chunk : chunks) EXPECT_EQ(chunk["id"], chunks.front()["id"]);
  for (std::size_t i = 0; i + 1 < chunks.size(); ++i) EXPECT_FALSE(chunks[i].contains("usage"));
}

TEST_F(ChatTest, LogprobsForEveryToken) {
  start();
  const Json reply = both(chat("say:é", {{"logprobs", true}, {"top_logprobs", 2}}));
  const Json& content = reply["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 3U);
  EXPECT_EQ(content[0]["token"], "\xEF\xBF\xBD");  // half a character
  EXPECT_EQ(content[0]["bytes"], Json::array({0xC3}));
  EXPECT_EQ(content[1]["bytes"], Json::array({0xA9}));
  EXPECT_EQ(content[2]["token"], "<|im_end|>");
  EXPECT_EQ(content[0]["logprob"], -0.25);
  ASSERT_EQ(content[0]["top_logprobs"].size(), 2U);
  EXPECT_EQ(content[0]["top_logprobs"][1]["logprob"], -1.25);
  EXPECT_TRUE(
      both(chat("say:a", {{"logprobs", true}}))["choices"][0]["logprobs"]["content"][0]["top_logprobs"].empty());
  EXPECT_TRUE(both(chat("say:a"))["choices"][0]["logprobs"].is_null());
}

TEST_F(ChatTest, ReasoningIsToldApart) {
  FakeOptions fake;
  fake.opens_thinking = true;
  start(fake);
  Json message = both(chat("say:why\n</think>\n\nYes"))["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "why");
  EXPECT_EQ(message["content"], "Yes");
  message = both(chat("say:Yes", {{"enable_thinking", false}}))["choices"][0]["message"];
  EXPECT_EQ(message["content"], "Yes");
  EXPECT_FALSE(message.contains("reasoning_content"));
  message = both(chat("say:Yes", {{"chat_template_kwargs", {{"enable_thinking", false}}}}))["choices"][0]["message"];
  EXPECT_EQ(message["content"], "Yes");
}

TEST_F(ChatTest, LeadingThinkIsReasoning) {
  start();
  const Json message = both(chat("say:<think>\nwhy\n</think>\n\nYes"))["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "why");
  EXPECT_EQ(message["content"], "Yes");
}

Json one_tool() {
  return Json::parse(R"([{"type": "function", "function": {"name": "f", "description": "d",
    "parameters": {"type": "object", "properties": {"i": {"type": "integer"}}}}}])");
}

TEST_F(ChatTest, JsonToolCalls) {
  start();
  const std::string call = "say:Look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"i\": 3}}\n</tool_call>";
  const Json reply = both(chat(call, {{"tools", one_tool()}}));
  const Json& choice = reply["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "Look.");
  const Json& made = choice["message"]["tool_calls"][0];
  EXPECT_EQ(made["type"], "function");
  EXPECT_EQ(made["id"].get<std::string>().substr(0, 5), "call_");
  EXPECT_EQ(made["id"].get<std::string>().size(), 29U);
  EXPECT_EQ(made["function"]["name"], "f");
  EXPECT_EQ(made["function"]["arguments"], R"({"i":3})");
  for (const Json& more : {Json{{"tools", one_tool()}, {"tool_choice", "none"}}, Json::object()}) {
    const Json plain = both(chat(call, more))["choices"][0];
    EXPECT_EQ(plain["finish_reason"], "stop");
    EXPECT_EQ(plain["message"]["content"], call.substr(4));
  }
}

TEST_F(ChatTest, XmlToolCalls) {
  FakeOptions fake;
  fake.tool_style = "xml";
  start(fake);
  const std::string call = "<tool_call>\n<function=f>\n<parameter=i>\n3\n</parameter>\n</function>\n</tool_call>";
  const Json reply = both(chat("say:" + call + "\n" + call, {{"tools", one_tool()}, {"tool_choice", "auto"}}));
  const Json& message = reply["choices"][0]["message"];
  ASSERT_EQ(message["tool_calls"].size(), 2U);
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_EQ(message["tool_calls"][1]["function"]["arguments"], R"({"i":3})");
  EXPECT_NE(message["tool_calls"][0]["id"], message["tool_calls"][1]["id"]);
}

TEST_F(ChatTest, AToolConversationRenders) {
  start();
  Json body = {
      {"messages",
       Json::array({{{"role", "developer"}, {"content", "Be brief."}},
                    {{"role", "user"},
                     {"content", Json::array({{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}})}},
                    {{"role", "assistant"},
                     {"content", nullptr},
                     {"reasoning_content", "hm"},
                     {"tool_calls", Json::array({{{"id", "call_1"},
                                                  {"type", "function"},
                                                  {"function", {{"name", "f"}, {"arguments", "{\"i\": 3}"}}}}})}},
                    {{"role", "tool"}, {"tool_call_id", "call_1"}, {"content", "4"}}})}};
  const std::string expected =
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nab<|im_end|>\n"
      "<|im_start|>assistant\n<think>\nhm\n</think>\n\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"i\": "
      "3}}\n</tool_call>"
      "<|im_end|>\n<|im_start|>tool\n4<|im_end|>\n<|im_start|>assistant\n";
  const Reply reply = post("/tokenize", body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["tokens"].get<std::vector<TokenId>>(), service().tokenizer()->encode(expected));
  EXPECT_EQ(post(kPath, body).status, 200);
}

TEST_F(ChatTest, ReasoningEffortFollowsTheTemplate) {
  FakeOptions fake;
  fake.takes_effort = true;
  start(fake);
  const auto effort = [&](const std::string& value) {
    return post(kPath, chat("say:x", {{"reasoning_effort", value}}));
  };
  EXPECT_EQ(effort("low").status, 200);
  const Json high = effort("high").json(), xhigh = effort("xhigh").json();
  EXPECT_EQ(high["steadfast"]["request_digest"], xhigh["steadfast"]["request_digest"]);
  EXPECT_EQ(effort("none").status, 400);
  EXPECT_NE(effort("none").json()["error"]["message"].get<std::string>().find("low, medium, xhigh"), std::string::npos);
}

// Many clients at once: each gets the reply that its request alone determines.
TEST_F(ChatTest, ManyClientsEachGetTheirOwnReply) {
  FakeOptions fake;
  fake.parallel = 7;
  start(fake);
  constexpr int kClients = 24;
  std::vector<std::thread> clients;
  std::atomic<int> good{0};
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round) {
        const std::string text = "client " + std::to_string(i);
        Request request;
        request.prompt =
            service().tokenizer()->encode("<|im_start|>user\n" + text + "<|im_end|>\n<|im_start|>assistant\n");
        request.sampling.seed = static_cast<std::uint64_t>(i);
        request.max_tokens = 60;
        const std::string expected = service().reply_to(request).text;
        const bool stream = (i + round) % 2 == 0;
        const Reply reply = post(kPath, chat(text, {{"seed", i}, {"max_tokens", 60}, {"stream", stream}}));
        const Json choices = stream ? joined(events(reply.body)) : reply.json()["choices"];
        if (choices[0]["message"]["content"] == expected) ++good;
      }
    });
  }
  for (auto& one : clients) one.join();
  EXPECT_EQ(good, kClients * 3);
}

}  // namespace
}  // namespace steadfast::testing
