// The engine on a tiny model: what it refuses, how replies end, and that a reply is a function of its request alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine_sample.h"

namespace steadfast::test {
namespace {

std::vector<TokenId> prompt_of(int length, int salt = 0) {
  std::vector<TokenId> ids;
  for (int i = 0; i < length; ++i) ids.push_back((7 * i + 13 * salt + i * i) % 96);
  return ids;
}

TEST(EngineCreate, RefusesOptionsThatCannotBe) {
  const auto message = [](const EngineOptions& options) { return Engine::create(load_tiny(), options).message(); };
  EXPECT_NE(message({.streams = 0}).find("--parallel 0"), std::string::npos);
  EXPECT_NE(message({.streams = 5000}).find("--parallel 5000"), std::string::npos);
  EXPECT_NE(message({.context = 129}).find("--context 129"), std::string::npos);
  EXPECT_NE(message({.context = -1}).find("--context -1"), std::string::npos);
  EXPECT_NE(message({.row_budget = -1}).find("one row"), std::string::npos);
}

TEST(EngineSubmit, RefusesWhatCanNeverRun) {
  const auto engine = tiny_engine({.context = 40});
  EXPECT_EQ(engine->card().window, 40);
  const auto message = [&](const Request& request) {
    Listener listener;
    const auto handle = engine->submit(request, listener.handler());
    EXPECT_EQ(listener.ends(), 0);
    return handle.message();
  };
  EXPECT_NE(message(request_of({}, 5)).find("prompt is empty"), std::string::npos);
  EXPECT_NE(message(request_of({1, 96}, 5)).find("id 96"), std::string::npos);
  EXPECT_NE(message(request_of({1, -1}, 5)).find("id -1"), std::string::npos);
  EXPECT_NE(message(request_of({1}, -5)).find("max_tokens -5"), std::string::npos);
  EXPECT_NE(message(request_of(prompt_of(40), 5)).find("the prompt has 40 tokens; a stream holds 40"),
            std::string::npos);
  EXPECT_EQ(engine->counters().requests, 0u);
}

TEST(Engine, EndsAtMaxTokensOrAtTheWindow) {
  const auto engine = tiny_engine({.context = 40});
  const Reply five = reply_of(*engine, request_of(prompt_of(10), 5));
  EXPECT_EQ(five.ids.size(), 5u);
  EXPECT_EQ(five.end.reason, FinishReason::kLength);
  EXPECT_EQ(five.end.timings.prompt_tokens, 10);
  EXPECT_EQ(five.end.timings.reply_tokens, 5);
  EXPECT_EQ(reply_of(*engine, request_of(prompt_of(10), 0)).ids.size(), 30u);
  EXPECT_EQ(reply_of(*engine, request_of(prompt_of(10), 1000)).ids.size(), 30u);
  EXPECT_EQ(reply_of(*engine, request_of(prompt_of(39), 0)).ids.size(), 1u);
}

TEST(Engine, EndsAtAnEndId) {
  const Reply plain = reply_of(*tiny_engine(), request_of(prompt_of(6), 30));
  ASSERT_EQ(plain.ids.size(), 30u);
  const TokenId last = plain.ids[9];
  const auto first = static_cast<std::size_t>(std::find(plain.ids.begin(), plain.ids.end(), last) - plain.ids.begin());
  const std::vector<TokenId> expected(plain.ids.begin(), plain.ids.begin() + static_cast<std::ptrdiff_t>(first) + 1);

  const auto with_eos = tiny_engine({}, {last});
  const Reply ended = reply_of(*with_eos, request_of(prompt_of(6), 30));
  EXPECT_EQ(ended.ids, expected);  // the end id is told, its text is not
  EXPECT_EQ(ended.end.reason, FinishReason::kStop);

  Request ignoring = request_of(prompt_of(6), 30);
  ignoring.ignore_eos = true;
  EXPECT_EQ(reply_of(*with_eos, ignoring).ids, plain.ids);
  ignoring.stop_ids = {last};  // its own stop ids still end it
  EXPECT_EQ(reply_of(*with_eos, ignoring).ids, expected);
}

TEST(Engine, GreedyAndSeedsDoWhatTheySay) {
  const auto engine = tiny_engine();
  const Reply one = reply_of(*engine, request_of(prompt_of(6), 20, 1)),
              again = reply_of(*engine, request_of(prompt_of(6), 20, 1));
  EXPECT_EQ(one.ids, again.ids);
  EXPECT_NE(one.ids, reply_of(*engine, request_of(prompt_of(6), 20, 2)).ids);
  Request greedy = request_of(prompt_of(6), 20, 1);
  greedy.sampling.temperature = 0;
  const Reply best = reply_of(*engine, greedy);
  greedy.sampling.seed = 2;
  EXPECT_EQ(best.ids, reply_of(*engine, greedy).ids);
}

TEST(Engine, TellsLogProbabilitiesOfTheRawLogits) {
  const auto engine = tiny_engine();
  Request request = request_of(prompt_of(6), 8);
  request.sampling.temperature = 0;
  request.top_logprobs = 3;
  Listener listener;
  ASSERT_TRUE(engine->submit(request, listener.handler()));
  listener.wait();
  const auto ids = listener.ids();
  const auto logprobs = listener.logprobs();
  ASSERT_EQ(logprobs.size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(logprobs[i].id, ids[i]);
    ASSERT_EQ(logprobs[i].top.size(), 3u);
    EXPECT_EQ(logprobs[i].top[0].first, ids[i]);  // greedy
    EXPECT_EQ(logprobs[i].top[0].second, logprobs[i].logprob);
    EXPECT_GE(logprobs[i].top[1].second, logprobs[i].top[2].second);
  }
}

// Sixteen requests of all kinds, alone, then beside each other under every number of streams, budget and piece.
TEST(Engine, AReplyIsAFunctionOfItsRequest) {
  std::vector<Request> requests;
  for (int i = 0; i < 16; ++i) {
    requests.push_back(request_of(prompt_of(1 + 5 * i % 60, i), 4 + i, static_cast<std::uint64_t>(i)));
    if (i % 3 == 0) requests.back().sampling.temperature = 0;
    if (i % 4 == 1) requests.back().sampling.top_k = 5;
    if (i % 5 == 2) requests.back().sampling.repetition_penalty = 1.3f;
  }
  std::vector<std::vector<TokenId>> alone;
  const auto single = tiny_engine();
  for (const Request& request : requests) alone.push_back(reply_of(*single, request).ids);
  for (const EngineOptions& options :
       {EngineOptions{.streams = 16}, EngineOptions{.streams = 3}, EngineOptions{.streams = 5, .row_budget = 1},
        EngineOptions{.streams = 16, .row_budget = 40, .piece = 7}}) {
    const auto engine = tiny_engine(options);
    std::vector<Listener> listeners(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) ASSERT_TRUE(engine->submit(requests[i], listeners[i].handler()));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(listeners[i].wait().reason, FinishReason::kLength);
      EXPECT_EQ(listeners[i].ids(), alone[i]) << "request " << i << ", " << options.streams << " streams";
    }
  }
}

TEST(Engine, CountsWhatItDid) {
  const auto engine = tiny_engine();
  reply_of(*engine, request_of(prompt_of(6), 5));
  reply_of(*engine, request_of(prompt_of(7), 3));
  const ServiceCounters counters = engine->counters();
  EXPECT_EQ(counters.requests, 2u);
  EXPECT_EQ(counters.prompt_tokens, 13u);
  EXPECT_EQ(counters.reply_tokens, 8u);
  EXPECT_EQ(counters.streams_waiting, 0);
}

TEST(Engine, StopStringsEndTheText) {
  auto engine = Engine::create(load_tiny(/*with_tokenizer=*/true), {});
  ASSERT_TRUE(engine) << engine.message();
  const Tokenizer& tokenizer = *(*engine)->tokenizer();
  Request request = request_of(tokenizer.encode("Hello"), 40);
  const Reply plain = reply_of(**engine, request);
  EXPECT_EQ(plain.text, tokenizer.decode(plain.ids));
  // Four bytes from the middle of the reply, at whole characters.
  std::size_t at = plain.text.size() / 2;
  while ((static_cast<unsigned char>(plain.text[at]) & 0xC0) == 0x80) ++at;
  std::size_t end = at + 4;
  while (end < plain.text.size() && (static_cast<unsigned char>(plain.text[end]) & 0xC0) == 0x80) ++end;
  const std::string stop = plain.text.substr(at, end - at);
  request.stop = {stop, "never in the reply"};
  const Reply stopped = reply_of(**engine, request);
  EXPECT_EQ(stopped.text, plain.text.substr(0, plain.text.find(stop)));
  EXPECT_EQ(stopped.end.reason, FinishReason::kStop);
  EXPECT_EQ(stopped.end.stop, stop);
  EXPECT_LT(stopped.ids.size(), plain.ids.size());
}

TEST(Engine, TellsProgressOfAPrompt) {
  const auto engine = tiny_engine({.piece = 10});
  std::vector<std::pair<int, int>> seen;
  engine->on_progress([&](int done, int total) { seen.emplace_back(done, total); });
  reply_of(*engine, request_of(prompt_of(25), 3));
  EXPECT_EQ(seen, (std::vector<std::pair<int, int>>{{10, 25}, {20, 25}, {25, 25}}));
}

}  // namespace
}  // namespace steadfast::test
