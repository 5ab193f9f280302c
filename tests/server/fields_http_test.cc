// Every field of the requests with values that it cannot take: a 400 that names the field, and no reply begun.
#include "harness.h"

namespace steadfast::testing {
namespace {

struct Case {
  const char* param;  // what the error must name
  const char* field;
  const char* values;  // a JSON list of bad values
};

const char* const kNotNumber = R"(["1", true, [], {}])";
const char* const kNotBool = R"(["true", 0, 1, [], {}])";

const std::vector<Case>& shared_cases() {
  static const std::vector<Case> cases = {
      {"model", "model", R"([1, true, [], {}])"},
      {"temperature", "temperature", kNotNumber},
      {"temperature", "temperature", "[-0.1, 1e300]"},
      {"top_p", "top_p", R"(["x", 0, -1, 1.5])"},
      {"min_p", "min_p", R"(["x", -0.5, 1.01])"},
      {"top_k", "top_k", R"(["x", 1.5, -2, 1e20, 99999999999])"},
      {"repetition_penalty", "repetition_penalty", R"(["x", 0, -1, 1e9])"},
      {"presence_penalty", "presence_penalty", R"(["x", 2.1, -2.1])"},
      {"frequency_penalty", "frequency_penalty", R"(["x", 2.1, -2.1])"},
      {"logit_bias", "logit_bias",
       R"([1, [], {"x": 1}, {"-1": 1}, {"99999": 1}, {"1.5": 1}, {" 1": 1}, {"1": "x"}, {"1": 101}, {"1": -101}, {"1": null}])"},
      {"seed", "seed", R"(["x", 1.5, true, 1e300])"},
      {"max_tokens", "max_tokens", R"(["x", 0, -1, 1.5, 2147483648, 1e18, true])"},
      {"max_completion_tokens", "max_completion_tokens", R"([0, -5, "x"])"},
      {"n", "n", R"([0, -1, 65, 1.5, "x", 1000000000000])"},
      {"stop", "stop", R"([1, true, {}, [1], [null], [""], "", ["a", []]])"},
      {"stop_token_ids", "stop_token_ids", R"([1, ["x"], [-1], [99999], [1.5], [null]])"},
      {"stream", "stream", kNotBool},
      {"stream_options", "stream_options", R"([1, "x", [], {}])"},
      {"ignore_eos", "ignore_eos", kNotBool},
      {"response_format", "response_format",
       R"([1, {}, {"type": "json_object"}, {"type": "json_schema", "json_schema": {}}, {"type": "x"}])"},
      {"response_format.type", "response_format", R"([{"type": 1}])"},
      {"min_tokens", "min_tokens", "[1]"},
      {"use_beam_search", "use_beam_search", "[true]"},
      {"guided_json", "guided_json", R"([{}])"},
      {"structured_outputs", "structured_outputs", R"([{}])"},
      {"prompt_logprobs", "prompt_logprobs", "[1]"},
      {"skip_special_tokens", "skip_special_tokens", "[false]"},
      {"repeat_penalty", "repeat_penalty", "[1.1]"},
  };
  return cases;
}

const std::vector<Case>& chat_cases() {
  static const std::vector<Case> cases = {
      {"messages", "messages", R"([null, 1, "x", {}, []])"},
      {"messages[0]", "messages", R"([[1], ["x"], [[]]])"},
      {"messages[0].role", "messages",
       R"([[{}], [{"role": 1}], [{"role": "king", "content": "x"}], [{"role": "function", "content": "x"}]])"},
      {"messages[0].content", "messages",
       R"([[{"role": "user"}], [{"role": "user", "content": null}], [{"role": "user", "content": 1}], [{"role": "user", "content": {}}]])"},
      {"messages[0].content[0]", "messages",
       R"([[{"role": "user", "content": [1]}], [{"role": "user", "content": [{}]}], [{"role": "user", "content": [{"type": "text"}]}],
           [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]])"},
      {"messages[0].content[0].text", "messages", R"([[{"role": "user", "content": [{"type": "text", "text": 1}]}]])"},
      {"messages[0].name", "messages", R"([[{"role": "user", "content": "x", "name": 1}]])"},
      {"messages[0].tool_call_id", "messages", R"([[{"role": "tool", "content": "x", "tool_call_id": 1}]])"},
      {"messages[0].tool_calls", "messages", R"([[{"role": "assistant", "tool_calls": 1}]])"},
      {"messages[0]", "messages", R"([[{"role": "user", "content": "x", "tool_calls": [{}]}]])"},
      {"messages[0].tool_calls[0]", "messages",
       R"([[{"role": "assistant", "tool_calls": [1]}], [{"role": "assistant", "tool_calls": [{}]}],
           [{"role": "assistant", "tool_calls": [{"type": "custom", "function": {"name": "f"}}]}]])"},
      {"messages[0].tool_calls[0].function.name", "messages",
       R"([[{"role": "assistant", "tool_calls": [{"function": {}}]}], [{"role": "assistant", "tool_calls": [{"function": {"name": "a<b"}}]}]])"},
      {"messages[0].tool_calls[0].function.arguments", "messages",
       R"([[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}],
           [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[]"}}]}],
           [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 1}}]}]])"},
      {"tools", "tools", R"([1, "x", {}])"},
      {"tools[0]", "tools", R"([[1]])"},
      {"tools[0].type", "tools", R"([[{}], [{"type": "custom"}]])"},
      {"tools[0].function", "tools", R"([[{"type": "function"}], [{"type": "function", "function": 1}]])"},
      {"tools[0].function.name", "tools",
       R"([[{"type": "function", "function": {}}], [{"type": "function", "function": {"name": ""}}]])"},
      {"tools[0].function.parameters", "tools",
       R"([[{"type": "function", "function": {"name": "f", "parameters": 1}}]])"},
      {"tools[0].function.strict", "tools", R"([[{"type": "function", "function": {"name": "f", "strict": true}}]])"},
      {"tool_choice", "tool_choice", R"([1, "required", "x", {"type": "function", "function": {"name": "f"}}])"},
      {"logprobs", "logprobs", kNotBool},
      {"top_logprobs", "top_logprobs", R"([1, 21, -1, "x"])"},
      {"chat_template_kwargs", "chat_template_kwargs",
       R"([1, [], {"messages": []}, {"tools": []}, {"add_generation_prompt": false}, {"enable_thinking": "x"}])"},
      {"enable_thinking", "enable_thinking", kNotBool},
      {"add_generation_prompt", "add_generation_prompt", kNotBool},
      {"reasoning_effort", "reasoning_effort", R"([1, "low"])"},
      {"functions", "functions", "[[]]"},
      {"function_call", "function_call", R"(["auto"])"},
      {"parallel_tool_calls", "parallel_tool_calls", "[false, 1]"},
      {"continue_final_message", "continue_final_message", "[true]"},
      {"chat_template", "chat_template", R"(["{{ 1 }}"])"},
      {"modalities", "modalities", R"([["text", "audio"]])"},
      {"audio", "audio", R"([{}])"},
  };
  return cases;
}

const std::vector<Case>& completion_cases() {
  static const std::vector<Case> cases = {
      {"prompt", "prompt",
       R"([null, 1, true, {}, [], "", [""], [[]], [1, "x"], ["x", 1], [[1], 2], [[1], "x"], [-1], [99999], [1.5], [[99999]], [null], [[null]], [[[1]]]])"},
      {"suffix", "suffix", R"(["x", 1])"},
      {"echo", "echo", kNotBool},
      {"logprobs", "logprobs", R"([6, -1, "x", true])"},
      {"best_of", "best_of", R"([2, 0, "x"])"},
  };
  return cases;
}

class FieldsTest : public HttpTest {
 protected:
  void expect_refused(const std::string& path, const Json& good, const std::vector<Case>& cases) {
    ASSERT_EQ(post(path, good).status, 200);
    for (const Case& one : cases) {
      for (const Json& value : Json::parse(one.values)) {
        Json body = good;
        body[one.field] = value;
        const Reply reply = post(path, body);
        ASSERT_EQ(reply.status, 400) << body << reply.body;
        const Json error = reply.json()["error"];
        EXPECT_EQ(error["type"], "invalid_request_error") << body;
        EXPECT_EQ(error["param"], one.param) << body << error;
        EXPECT_FALSE(error["message"].get<std::string>().empty());
      }
    }
    EXPECT_EQ(service().counters().streams_running, 0);
  }
};

TEST_F(FieldsTest, ChatRequests) {
  start();
  const Json good = chat("say:x");
  expect_refused("/v1/chat/completions", good, shared_cases());
  expect_refused("/v1/chat/completions", good, chat_cases());
  EXPECT_EQ(service().counters().requests, 2U);
}

TEST_F(FieldsTest, CompletionRequests) {
  start();
  const Json good = {{"prompt", "say:x"}};
  expect_refused("/v1/completions", good, shared_cases());
  expect_refused("/v1/completions", good, completion_cases());
  EXPECT_EQ(service().counters().requests, 2U);
}

TEST_F(FieldsTest, NullsAndHarmlessFieldsAreIgnored) {
  start();
  Json body = chat("say:x");
  for (const auto* cases : {&shared_cases(), &chat_cases()}) {
    for (const Case& one : *cases) {
      if (std::string(one.field) != "messages") body[one.field] = nullptr;
    }
  }
  for (const char* key : {"user", "metadata", "store", "service_tier", "anything"}) body[key] = "x";
  body["top_k"] = 5.0;
  body["length_penalty"] = 1;
  body["modalities"] = {"text"};
  body["response_format"] = {{"type", "text"}};
  body["parallel_tool_calls"] = true;
  EXPECT_EQ(post("/v1/chat/completions", body).status, 200);
}

TEST_F(FieldsTest, SeedsTakeSixtyFourBits) {
  start();
  const auto seed_of = [&](const Json& seed) {
    return post("/v1/completions", {{"prompt", "say:x"}, {"seed", seed}}).json()["steadfast"]["seed"];
  };
  EXPECT_EQ(seed_of(-1), 18446744073709551615ULL);
  EXPECT_EQ(seed_of(18446744073709551615ULL), 18446744073709551615ULL);
  EXPECT_EQ(seed_of(0), 0U);
}

TEST_F(FieldsTest, NumbersOfThingsAreLimited) {
  start();
  const auto refused = [&](Json body, const char* field, const Json& value) {
    body[field] = value;
    const std::string path = body.contains("messages") ? "/v1/chat/completions" : "/v1/completions";
    return post(path, body).status == 400;
  };
  const Json completion = {{"prompt", "say:x"}};
  EXPECT_TRUE(refused(completion, "stop", Json(std::vector<std::string>(17, "x"))));
  EXPECT_FALSE(refused(completion, "stop", Json(std::vector<std::string>(16, "yy"))));
  EXPECT_TRUE(refused(completion, "stop", std::string(1025, 'x')));
  EXPECT_TRUE(refused(completion, "stop_token_ids", Json(std::vector<int>(257, 1))));
  EXPECT_TRUE(refused(completion, "prompt", Json(std::vector<std::string>(257, "x"))));
  EXPECT_TRUE(refused(completion, "prompt", Json(std::vector<std::string>(65, "x"))));  // more than streams
  const Json message = {{"role", "user"}, {"content", "x"}};
  EXPECT_TRUE(refused(chat("x"), "messages", Json(std::vector<Json>(4097, message))));
  const Json tool = {{"type", "function"}, {"function", {{"name", "f"}}}};
  EXPECT_TRUE(refused(chat("say:x"), "tools", Json(std::vector<Json>(257, tool))));
}

TEST_F(FieldsTest, WhatDoesNotFitTheWindowIsRefused) {
  FakeOptions fake;
  fake.window = 64;
  start(fake);
  for (const Json& body : {Json{{"prompt", std::string(64, 'x')}, {"max_tokens", 1}},
                           Json{{"prompt", std::string(60, 'x')}, {"max_tokens", 5}}}) {
    const Reply reply = post("/v1/completions", body);
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json()["error"]["code"], "context_length_exceeded");
  }
  EXPECT_EQ(post("/v1/completions", {{"prompt", std::string(60, 'x')}, {"max_tokens", 4}}).status, 200);
  EXPECT_EQ(post("/v1/chat/completions", chat(std::string(64, 'x'))).status, 400);
}

TEST_F(FieldsTest, WhatTheTemplateCannotDoIsRefused) {
  const Json tools = {{"tools", Json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}})}};
  for (const char* style : {"none", "other"}) {
    FakeOptions fake;
    fake.tool_style = style;
    start(fake);
    const Reply reply = post("/v1/chat/completions", chat("say:x", tools));
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json()["error"]["param"], "tools");
  }
  start();
  EXPECT_EQ(post("/v1/chat/completions", chat("say:x", tools)).status, 200);
  const Reply raised =
      post("/v1/chat/completions", {{"messages", Json::array({{{"role", "tool"}, {"content", "x"}}})}});
  EXPECT_EQ(raised.status, 400);
  EXPECT_NE(raised.json()["error"]["message"].get<std::string>().find("cannot begin with a tool"), std::string::npos);
}

}  // namespace
}  // namespace steadfast::testing
