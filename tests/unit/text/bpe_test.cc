// Merging: both loops against the definition itself, long pieces, bytes without a token, and threads.
#include "text/bpe.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "sample.h"

namespace steadfast {
namespace {

// A vocabulary over the letters a to d with random merges.
struct Made {
  std::vector<std::string> tokens;
  std::vector<BpeMerge> merges;

  explicit Made(std::uint64_t seed, int count) : tokens{"a", "b", "c", "d"} {
    test::Dice dice(seed);
    std::map<std::string, TokenId> ids;
    for (std::size_t i = 0; i < tokens.size(); ++i) ids[tokens[i]] = static_cast<TokenId>(i);
    for (int i = 0; i < count; ++i) {
      const auto left = static_cast<TokenId>(test::roll(dice, tokens.size()));
      const auto right = static_cast<TokenId>(test::roll(dice, tokens.size()));
      const std::string text = tokens[left] + tokens[right];
      if (text.size() > 12) continue;
      const auto [at, is_new] = ids.emplace(text, static_cast<TokenId>(tokens.size()));
      if (is_new) tokens.push_back(text);
      merges.push_back({left, right, at->second});
    }
  }
  Bpe bpe(BpeOptions options = {}) const { return {{tokens.begin(), tokens.end()}, merges, options}; }

  // The definition: the pair of lowest rank, leftmost, until there is none. Of two ranks for a pair the last counts.
  std::vector<TokenId> plain(std::string_view piece) const {
    std::vector<TokenId> ids;
    for (const char letter : piece) ids.push_back(letter - 'a');
    std::map<std::pair<TokenId, TokenId>, std::pair<std::size_t, TokenId>> ranks;
    for (std::size_t i = 0; i < merges.size(); ++i) ranks[{merges[i].left, merges[i].right}] = {i, merges[i].result};
    while (true) {
      std::size_t best = ids.size(), rank = merges.size();
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        const auto found = ranks.find({ids[i], ids[i + 1]});
        if (found != ranks.end() && found->second.first < rank)
          std::tie(best, rank) = std::pair(i, found->second.first);
      }
      if (best == ids.size()) return ids;
      ids[best] = merges[rank].result;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
  }
};

std::string letters(test::Dice& dice, std::size_t count) {
  std::string text;
  while (text.size() < count) text.push_back(static_cast<char>('a' + test::roll(dice, 4)));
  return text;
}

TEST(Bpe, EqualsTheDefinition) {
  test::Dice dice(7);
  for (int round = 0; round < 60; ++round) {
    const Made made(round, 40);
    const Bpe bpe = made.bpe();
    for (const std::size_t size : {1, 2, 3, 5, 9, 20, 47, 48, 49, 50, 90, 200}) {
      const std::string piece = letters(dice, size);
      std::vector<TokenId> ids;
      bpe.encode(piece, ids);
      ASSERT_EQ(ids, made.plain(piece)) << piece;
    }
  }
}

TEST(Bpe, AWholeTokenIsOneOnlyIfItsMergesMakeIt) {
  const std::vector<std::string_view> tokens = {"a", "b", "ab", "aba"};
  const std::vector<BpeMerge> merges = {{0, 1, 2}};
  std::vector<TokenId> ids;
  const Bpe merging(tokens, merges, {});
  for (int again = 0; again < 2; ++again) merging.encode("aba", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{2, 0, 2, 0}));
  ids.clear();
  Bpe(tokens, merges, {.ignore_merges = true}).encode("aba", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{3}));
}

TEST(Bpe, BytesWithoutAToken) {
  const std::vector<std::string_view> tokens = {"a", "b", "ab", "?"};
  const std::vector<BpeMerge> merges = {{0, 1, 2}};
  const auto encode = [&](BpeOptions options, std::string_view piece) {
    std::vector<TokenId> ids;
    Bpe(tokens, merges, options).encode(piece, ids);
    return ids;
  };
  EXPECT_EQ(encode({}, "xaxxb"), (std::vector<TokenId>{2}));  // dropped before anything merges
  EXPECT_EQ(encode({}, "xxx"), std::vector<TokenId>());
  EXPECT_EQ(encode({.unknown = 3}, "xaxxb"), (std::vector<TokenId>{3, 0, 3, 3, 1}));
  EXPECT_EQ(encode({.unknown = 3, .fuse_unknown = true}, "xaxxb"), (std::vector<TokenId>{3, 0, 3, 1}));
  EXPECT_EQ(encode({}, std::string(100, 'x')), std::vector<TokenId>());
}

TEST(Bpe, ALongPieceTakesNoQuadraticTime) {
  const Made made(3, 40);
  std::vector<std::string> tokens = {"a"};
  std::vector<BpeMerge> merges;
  for (TokenId i = 0; i < 6; ++i) {
    tokens.push_back(tokens.back() + tokens.back());
    merges.push_back({i, i, i + 1});
  }
  const Bpe bpe({tokens.begin(), tokens.end()}, merges, {});
  std::vector<TokenId> ids;
  const test::Stopwatch watch;
  bpe.encode(std::string(1 << 20, 'a'), ids);
  EXPECT_LT(watch.seconds(), 20);
  EXPECT_EQ(ids, std::vector<TokenId>((1 << 20) / 64, 6));
}

TEST(Bpe, ThreadsShareOne) {
  const Made made(11, 60);
  const Bpe bpe = made.bpe();
  std::vector<std::vector<TokenId>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] {
      test::Dice dice(5);
      for (int i = 0; i < 2000; ++i) bpe.encode(letters(dice, 1 + test::roll(dice, 12)), result);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, results.front());
}

}  // namespace
}  // namespace steadfast
