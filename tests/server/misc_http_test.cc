// The small endpoints: models, health, version, metrics, tokenizer; and what errors look like.
#include "harness.h"

namespace steadfast::testing {
namespace {

class MiscTest : public HttpTest {};

TEST_F(MiscTest, Models) {
  start();
  const Json list = get("/v1/models").json();
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "fake-model");
  EXPECT_EQ(list["data"][0]["max_model_len"], 4096);
  EXPECT_EQ(get("/v1/models/fake-model").json(), list["data"][0]);
  const Reply missing = get("/v1/models/gpt-4");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.json()["error"]["code"], "model_not_found");
}

TEST_F(MiscTest, AnAliasNamesTheModel) {
  ServerOptions options;
  options.alias = "org/other";
  start({}, options);
  EXPECT_EQ(get("/v1/models").json()["data"][0]["id"], "org/other");
  EXPECT_EQ(get("/v1/models/org/other").status, 200);
  EXPECT_EQ(get("/v1/models/org%2Fother").status, 200);
  EXPECT_EQ(post("/v1/completions", {{"model", "org/other"}, {"prompt", "say:x"}}).json()["model"], "org/other");
  EXPECT_EQ(post("/v1/completions", {{"model", "fake-model"}, {"prompt", "say:x"}}).status, 200);
  EXPECT_EQ(post("/v1/completions", {{"model", "gpt-4"}, {"prompt", "say:x"}}).status, 404);
}

TEST_F(MiscTest, HealthAndVersion) {
  start();
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/v1/health").status, 200);
  EXPECT_FALSE(get("/version").json()["version"].get<std::string>().empty());
  const auto head = client()->Head("/health");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
}

TEST_F(MiscTest, MetricsCountRequestsAndTokens) {
  start();
  post("/v1/completions", {{"prompt", "say:abc"}});
  post("/v1/completions", {{"prompt", 7}});
  get("/no/such/thing");
  std::string text;
  ASSERT_TRUE(eventually([&] {
    text = get("/metrics").body;
    return text.find("route=\"other\"") != std::string::npos;
  }));
  EXPECT_NE(text.find("steadfast_http_requests_total{route=\"/v1/completions\",status=\"200\"} 1"), std::string::npos)
      << text;
  EXPECT_NE(text.find("steadfast_http_requests_total{route=\"/v1/completions\",status=\"400\"} 1"), std::string::npos);
  EXPECT_NE(text.find("steadfast_reply_tokens_total 4"), std::string::npos);
  EXPECT_NE(text.find("steadfast_prompt_tokens_total 7"), std::string::npos);
  EXPECT_NE(text.find("steadfast_first_token_seconds_count 1"), std::string::npos);
  EXPECT_NE(text.find("steadfast_streams_running 0"), std::string::npos);
  for (const char* line :
       {"# TYPE steadfast_prompt_tokens_reused_total counter", "steadfast_prompt_tokens_reused_total 11\n",
        "steadfast_streams_set_aside_total 12\n", "steadfast_rounds_total 13\n", "steadfast_rows_total 14\n",
        "# TYPE steadfast_pages gauge", "steadfast_pages{state=\"free\"} 15\n", "steadfast_pages{state=\"kept\"} 16\n",
        "steadfast_pages{state=\"in_use\"} 17\n", "steadfast_kept_state_bytes 18\n", "steadfast_streams_waiting 0\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST_F(MiscTest, TokenizeAndBack) {
  start();
  const Json reply = post("/tokenize", {{"prompt", "the hello<|im_end|>"}, {"return_token_strs", true}}).json();
  const auto ids = service().tokenizer()->encode("the hello<|im_end|>");
  EXPECT_EQ(reply["tokens"].get<std::vector<TokenId>>(), ids);
  EXPECT_EQ(reply["count"], ids.size());
  EXPECT_EQ(reply["max_model_len"], 4096);
  EXPECT_EQ(reply["token_strs"].back(), "<|im_end|>");
  EXPECT_EQ(post("/detokenize", {{"tokens", ids}}).json()["prompt"], "the hello<|im_end|>");
  const Json messages = chat("x");
  const Json rendered = post("/tokenize", messages).json();
  const std::string expected = "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(rendered["tokens"].get<std::vector<TokenId>>(), service().tokenizer()->encode(expected));
  EXPECT_EQ(post("/tokenize", {{"prompt", "x"}, {"messages", messages["messages"]}}).status, 400);
}

TEST_F(MiscTest, PathsAndMethods) {
  start();
  EXPECT_EQ(get("/v1/nothing").status, 404);
  EXPECT_EQ(get("/").status, 404);
  const Reply wrong = get("/v1/chat/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(httplib::detail::get_header_value(wrong.headers, "Allow", 0, ""), std::string("POST"));
  EXPECT_EQ(post("/health", Json::object()).status, 405);
  EXPECT_EQ(client()->Delete("/v1/models")->status, 405);
  EXPECT_EQ(post("/v1/chat/completions/", chat("x")).status, 404);
  for (const char* path : {"/v1/nothing", "/v1/chat/completions"}) {
    const Json error = get(path).json()["error"];
    for (const char* key : {"message", "type", "param", "code"}) EXPECT_TRUE(error.contains(key)) << path << key;
  }
}

TEST_F(MiscTest, AModelWithoutTemplateSaysSo) {
  FakeOptions fake;
  fake.has_template = false;
  start(fake);
  const Reply reply = post("/v1/chat/completions", chat("x"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json()["error"]["code"], "no_chat_template");
  EXPECT_EQ(post("/v1/completions", {{"prompt", "say:x"}}).status, 200);
}

TEST_F(MiscTest, AConnectionServesManyRequests) {
  start();
  auto one = client();
  for (int i = 0; i < 20; ++i) {
    const auto reply = one->Post("/v1/completions", R"({"prompt": "say:x"})", "application/json");
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
  }
}

}  // namespace
}  // namespace steadfast::testing
