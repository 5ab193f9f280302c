// What the engine tells of a reply's path, and that the rest of its receipt is the same on every path, to the byte.
#include <gtest/gtest.h>

#include "engine_sample.h"
#include "server/receipt.h"

namespace steadfast::test {
namespace {

std::vector<TokenId> prompt_of(int length, int salt = 0) {
  std::vector<TokenId> ids;
  for (int i = 0; i < length; ++i) ids.push_back((7 * i + 13 * salt + i * i) % 96);
  return ids;
}

Json receipt_of(const Engine& engine, const Request& request, const Reply& reply) {
  return to_json(make_receipt(request, engine.card()), reply.ids, reply.end.path);
}

// The part that must be equal.
std::string fixed_part(Json receipt) {
  receipt.erase("path");
  return receipt.dump();
}

// The reply to `second`, submitted by the engine's own thread with the first token of `first`: so they share rounds.
std::pair<Reply, Reply> together(Engine& engine, const Request& first, const Request& second) {
  Listener one, two;
  ReplyHandler handler = one.handler();
  const auto tell = handler.on_piece;
  bool submitted = false;
  handler.on_piece = [&, tell](const ReplyPiece& piece) {
    if (!submitted) EXPECT_TRUE(engine.submit(second, two.handler()));
    submitted = true;
    tell(piece);
  };
  EXPECT_TRUE(engine.submit(first, std::move(handler)));
  ReplyEnd first_end = one.wait(), second_end = two.wait();
  return {{one.ids(), one.text(), first_end}, {two.ids(), two.text(), second_end}};
}

TEST(ReplyPath, CountsRoundsAndPieces) {
  const auto engine = tiny_engine();
  const ReplyPath path = reply_of(*engine, request_of(prompt_of(10), 6)).end.path;
  EXPECT_EQ(path.page, 0);
  EXPECT_EQ(path.prefix_rows, 0);
  EXPECT_EQ(path.prompt_pieces, 1);
  EXPECT_EQ(path.rounds, 6);
  EXPECT_EQ(path.rounds_shared, 0);
  EXPECT_EQ(path.set_aside, 0);
  const ReplyPath pieces = reply_of(*tiny_engine({.piece = 4}), request_of(prompt_of(10), 6)).end.path;
  EXPECT_EQ(pieces.prompt_pieces, 3);
  EXPECT_EQ(pieces.rounds, 8);
}

TEST(ReplyPath, CountsSharedRounds) {
  const auto engine = tiny_engine({.streams = 2});
  const auto [first, second] = together(*engine, request_of(prompt_of(5), 40), request_of(prompt_of(7, 1), 10));
  EXPECT_EQ(first.end.path.rounds, 40);
  EXPECT_EQ(first.end.path.rounds_shared, 10);
  EXPECT_EQ(second.end.path.rounds, 10);
  EXPECT_EQ(second.end.path.rounds_shared, 10);
}

TEST(ReplyPath, TheRestOfAReceiptIsTheSameOnEveryPath) {
  Request request = request_of(prompt_of(40), 50, 9);
  request.ignore_eos = true;
  const auto alone = tiny_engine({.streams = 2});
  const Json reference = receipt_of(*alone, request, reply_of(*alone, request));
  const std::string expected = fixed_part(reference);
  EXPECT_EQ(reference["path"]["kv"], "whole");

  const Request other = request_of(prompt_of(33, 2), 60, 4);
  const Reply beside = together(*alone, other, request).second;
  EXPECT_GT(beside.end.path.rounds_shared, 0);
  EXPECT_EQ(fixed_part(receipt_of(*alone, request, beside)), expected);

  const auto paged = tiny_engine({.streams = 2, .paged = true, .page = 16});
  for (const int prefix : {0, 32}) {  // cold, then warm
    const Reply reply = reply_of(*paged, request);
    EXPECT_EQ(reply.end.path.page, 16);
    EXPECT_EQ(reply.end.path.prefix_rows, prefix);
    EXPECT_EQ(fixed_part(receipt_of(*paged, request, reply)), expected);
  }

  // Eight pages hold one of the two streams to its end, so the newer one is set aside.
  const auto short_pool = tiny_engine({.streams = 2, .paged = true, .page = 16, .pool_pages = 8});
  const Reply late = together(*short_pool, other, request).second;
  EXPECT_GT(late.end.path.set_aside, 0);
  EXPECT_EQ(fixed_part(receipt_of(*short_pool, request, late)), expected);

  Request longer = request;
  longer.sampling.seed = 10;
  EXPECT_NE(fixed_part(receipt_of(*alone, longer, reply_of(*alone, longer))), expected);
}

TEST(EngineCounters, TellOfRoundsAndPages) {
  const auto engine = tiny_engine({.paged = true, .page = 16, .pool_pages = 8});
  reply_of(*engine, request_of(prompt_of(40), 5));
  reply_of(*engine, request_of(prompt_of(40), 5));
  // The engine's thread counts pages after it told of the end.
  ServiceCounters counters;
  do counters = engine->counters();
  while (counters.streams_running > 0);
  EXPECT_EQ(counters.rounds, 10u);
  EXPECT_EQ(counters.rows, 44u + 12u);  // the second time two pages were found
  EXPECT_EQ(counters.prompt_tokens_reused, 32u);
  EXPECT_EQ(counters.pages_in_use, 0);
  EXPECT_EQ(counters.pages_kept, engine->prefixes()->kept());
  EXPECT_EQ(counters.pages_free + counters.pages_kept, 8);
}

}  // namespace
}  // namespace steadfast::test
