// Legacy completions over HTTP: the forms of prompts, echo, log-probabilities, choices.
#include "harness.h"

namespace steadfast::testing {
namespace {

constexpr const char* kPath = "/v1/completions";

class CompletionTest : public HttpTest {
 protected:
  // Whole and streamed, expected to say the same; returns the whole.
  Json both(Json body) {
    const Reply whole = post(kPath, body);
    EXPECT_EQ(whole.status, 200) << whole.body;
    body["stream"] = true;
    const auto chunks = events(post(kPath, body).body);
    const Json reply = whole.json();
    for (std::size_t i = 0; i < reply["choices"].size(); ++i) {
      std::string text;
      Json finish;
      Json logprobs;
      for (const Json& chunk : chunks) {
        EXPECT_EQ(chunk["object"], "text_completion");
        for (const Json& choice : chunk["choices"]) {
          if (choice["index"].get<std::size_t>() != i) continue;
          text += choice["text"].get<std::string>();
          if (!choice["finish_reason"].is_null()) finish = choice["finish_reason"];
          for (const auto& [key, list] : choice["logprobs"].items()) {
            for (const Json& one : list) logprobs[key].push_back(one);
          }
        }
      }
      EXPECT_EQ(text, reply["choices"][i]["text"]);
      EXPECT_EQ(finish, reply["choices"][i]["finish_reason"]);
      EXPECT_EQ(logprobs, reply["choices"][i]["logprobs"]);
    }
    return reply;
  }

  std::string expected(const std::vector<TokenId>& prompt, std::uint64_t seed, int most) {
    Request request;
    request.prompt = prompt;
    request.sampling.seed = seed;
    request.max_tokens = most;
    return service().reply_to(request).text;
  }
};

TEST_F(CompletionTest, PromptsInAllFourForms) {
  start();
  const auto& tokenizer = *service().tokenizer();
  const auto a = tokenizer.encode("one"), b = tokenizer.encode("the hello");
  const Json more = {{"seed", 3}, {"max_tokens", 20}};
  const auto send = [&](const Json& prompt) {
    Json body = {{"prompt", prompt}};
    body.update(more);
    return both(body)["choices"];
  };
  EXPECT_EQ(send("one")[0]["text"], expected(a, 3, 20));
  EXPECT_EQ(send(a)[0]["text"], expected(a, 3, 20));
  for (const Json& prompts : {Json::array({"one", "the hello"}), Json::array({a, b})}) {
    const Json choices = send(prompts);
    ASSERT_EQ(choices.size(), 2U);
    EXPECT_EQ(choices[0]["text"], expected(a, 3, 20));
    EXPECT_EQ(choices[1]["text"], expected(b, 3, 20));
    EXPECT_EQ(choices[1]["index"], 1);
  }
}

TEST_F(CompletionTest, ChoicesComePromptByPrompt) {
  start();
  const auto a = service().tokenizer()->encode("one"), b = service().tokenizer()->encode("two");
  const Json reply =
      both({{"prompt", {"one", "two"}}, {"n", 2}, {"best_of", 2}, {"seed", 5}, {"max_tokens", 12}, {"echo", true}});
  const Json& choices = reply["choices"];
  ASSERT_EQ(choices.size(), 4U);
  EXPECT_EQ(choices[0]["text"], "one" + expected(a, 5, 12));
  EXPECT_EQ(choices[1]["text"], "one" + expected(a, choice_seed(5, 1), 12));
  EXPECT_EQ(choices[3]["text"], "two" + expected(b, choice_seed(5, 1), 12));
  EXPECT_EQ(reply["usage"]["prompt_tokens"], a.size() + b.size());
  EXPECT_EQ(reply["steadfast"]["choices"].size(), 4U);
}

TEST_F(CompletionTest, SixteenTokensUnlessSaidOtherwise) {
  start();
  EXPECT_EQ(both({{"prompt", "x"}, {"ignore_eos", true}})["usage"]["completion_tokens"], 16);
}

TEST_F(CompletionTest, LegacyLogprobs) {
  start();
  const Json reply = both({{"prompt", "say:aéb"}, {"logprobs", 2}});
  const Json& logprobs = reply["choices"][0]["logprobs"];
  EXPECT_EQ(reply["choices"][0]["text"], "aéb");
  EXPECT_EQ(logprobs["tokens"], Json::array({"a", "bytes:\\xc3", "bytes:\\xa9", "b", "<|im_end|>"}));
  EXPECT_EQ(logprobs["token_logprobs"][0], -0.25);
  EXPECT_EQ(logprobs["text_offset"], Json::array({0, 1, 2, 3, 4}));
  EXPECT_EQ(logprobs["top_logprobs"][0].size(), 2U);
  const Json none = both({{"prompt", "say:a"}, {"logprobs", 0}})["choices"][0]["logprobs"];
  EXPECT_TRUE(none["top_logprobs"][0].is_null());
}

TEST_F(CompletionTest, AFolderWithoutTokenizerTakesIds) {
  FakeOptions fake;
  fake.has_tokenizer = false;
  start(fake);
  EXPECT_EQ(post(kPath, {{"prompt", {104, 105}}}).status, 200);
  const Reply text = post(kPath, {{"prompt", "hi"}});
  EXPECT_EQ(text.status, 400);
  EXPECT_EQ(text.json()["error"]["code"], "no_tokenizer");
  EXPECT_EQ(post("/v1/chat/completions", chat("hi")).status, 400);
  EXPECT_EQ(post("/tokenize", {{"prompt", "hi"}}).status, 400);
}

TEST_F(CompletionTest, StopTokenIdsEndReplies) {
  start();
  EXPECT_EQ(both({{"prompt", "say:abc"}, {"stop_token_ids", {'b'}}})["choices"][0]["text"], "a");
  EXPECT_EQ(both({{"prompt", "say:abc"}, {"stop_token_ids", {'z'}}})["choices"][0]["text"], "abc");
}

}  // namespace
}  // namespace steadfast::testing
