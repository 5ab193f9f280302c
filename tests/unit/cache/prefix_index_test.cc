// Kept prefixes are found by their tokens and by the roles of their rows.
#include "cache/prefix_index.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backend/cpu/cpu_backend.h"

namespace steadfast {
namespace {

constexpr int kPage = 16;

class PrefixIndexTest : public testing::Test {
 protected:
  PrefixIndexTest() : backend_(std::move(make_cpu_backend({1, Act::kF32, "scalar"})).value()) {
    CacheShape shape;
    shape.layers = 1;
    shape.kv_heads = 1;
    shape.dim = 16;
    shape.dtype = DType::kBF16;
    pool_ = std::move(PagePool::create(*backend_, shape, kPage, 16)).value();
    tokens_.resize(4 * kPage + 1);
    std::iota(tokens_.begin(), tokens_.end(), 100);
  }

  // Computes and keeps `count` pages of the tokens, so many of which are a prompt's; the pages held.
  std::vector<std::int32_t> keep(PrefixIndex& index, int count, int prompt) {
    std::vector<std::int32_t> pages;
    for (int i = 0; i < count; ++i) {
      pages.push_back(pool_->take());
      const auto tokens = std::span<const TokenId>(tokens_).first(static_cast<std::size_t>((i + 1) * kPage));
      const std::int32_t held = index.keep(tokens, pages, nullptr, prompt);
      if (held == pages.back()) continue;
      pool_->share(held);
      pool_->drop(pages.back());
      pages.back() = held;
    }
    return pages;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<PagePool> pool_;
  std::vector<TokenId> tokens_;
};

TEST_F(PrefixIndexTest, RowsOfTheOtherRoleEndThePrefix) {
  PrefixIndex index(*pool_, *backend_, 0);
  constexpr int kPrompt = kPage + 5;  // the second page has rows of both roles, the third a reply's
  const auto pages = keep(index, 3, kPrompt);
  EXPECT_EQ(index.find(tokens_, kPrompt).pages, pages) << "the stream itself, computed again";
  EXPECT_EQ(index.find(tokens_, 4 * kPage + 1).pages, std::vector(pages.begin(), pages.begin() + 1));
  EXPECT_EQ(index.find(tokens_, kPrompt + 1).pages.size(), 1U);
  EXPECT_EQ(index.find(tokens_, kPrompt - 1).pages.size(), 1U);
  EXPECT_EQ(index.find(tokens_, kPage).pages.size(), 1U);
  EXPECT_EQ(index.find(tokens_, kPage - 1).pages.size(), 0U);
  EXPECT_EQ(index.find(tokens_).pages.size(), 1U) << "all of them a prompt's";
}

TEST_F(PrefixIndexTest, EachRolesRowsAreKeptBesideTheOthers) {
  PrefixIndex index(*pool_, *backend_, 0);
  const auto reply = keep(index, 3, kPage), prompt = keep(index, 3, 4 * kPage);
  EXPECT_EQ(reply[0], prompt[0]);
  EXPECT_NE(reply[1], prompt[1]);
  EXPECT_EQ(index.kept(), 5);
  EXPECT_EQ(index.find(tokens_, 4 * kPage).pages, prompt);
  EXPECT_EQ(index.find(tokens_, kPage).pages, reply);
  for (const auto& pages : {reply, prompt})
    for (const auto page : pages) pool_->drop(page);
  int freed = 0;
  while (index.evict()) ++freed;
  EXPECT_EQ(freed, 5);
}

TEST_F(PrefixIndexTest, OneArithmeticOneRole) {
  PrefixIndex index(*pool_, *backend_, 0);
  const auto pages = keep(index, 3, kAllPrompt);
  EXPECT_EQ(index.find(tokens_).pages, pages);
}

}  // namespace
}  // namespace steadfast
