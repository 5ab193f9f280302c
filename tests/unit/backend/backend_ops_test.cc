// The CPU backend's ops through ops/*.h: any number of threads, any cut into rounds and pieces, any layout of the cache
// gives the same bits; small ops against their definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "cache/stream_state.h"
#include "kernel_cases.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace steadfast::test {
namespace {

std::unique_ptr<Backend> make(int threads, Act act = Act::kInt8, const char* isa = "") {
  auto backend = make_cpu_backend({threads, act, isa});
  CHECK(backend.is_ok(), "{}", backend.message());
  return std::move(*backend);
}

Matrix matrix(std::vector<float>& values, int rows) {
  return {values.data(), rows, static_cast<int>(values.size()) / rows};
}

TEST(CpuBackend, RefusesWhatItCannotBe) {
  EXPECT_NE(make_cpu_backend({-1, Act::kF32, ""}).message().find("--threads"), std::string::npos);
  EXPECT_NE(make_cpu_backend({1, Act::kF32, "sse9"}).message().find("sse9"), std::string::npos);
  const auto named = make_cpu_backend({2, Act::kBF16, "scalar"});
  ASSERT_TRUE(named);
  EXPECT_EQ((*named)->describe(), "cpu, scalar, 2 threads, bf16 activations");
}

// Two weights of different groups and an unquantised head read the same rows; one job is fine.
TEST(CpuBackend, LinearHasTheSameBitsForAnyThreadsAndAnyCutOfRows) {
  Dice dice(1);
  constexpr int kIn = 128, kRows = 150;
  const MemoryAffine small(dice, 133, kIn, 4, 32, DType::kF16, true), large(dice, 70, kIn, 6, 128, DType::kBF16, false);
  const auto x = normal_floats(dice, std::size_t{kRows} * kIn), bias = normal_floats(dice, 133);
  for (const Act act : {Act::kInt8, Act::kBF16, Act::kF32}) {
    std::vector<float> expected;
    for (const int threads : {1, 3}) {
      for (const int cut : {kRows, 1, 7, 64, 100}) {
        const auto backend = make(threads, act);
        auto first = backend->pack(small, {}), second = backend->pack(large, {});
        ASSERT_TRUE(first && second);
        std::vector<float> input = x, one(std::size_t{kRows} * 133), two(std::size_t{kRows} * 70), fine(two.size());
        for (int row = 0; row < kRows; row += cut) {
          const int rows = std::min(cut, kRows - row);
          const auto part = [&](std::vector<float>& all) {
            const Matrix m = matrix(all, kRows);
            return Matrix(m.row(row), rows, m.width);
          };
          const LinearJob jobs[] = {{first->get(), part(one), bias.data(), nullptr},
                                    {second->get(), part(two), nullptr, nullptr},
                                    {second->get(), part(fine), nullptr, nullptr, /*fine=*/true}};
          ops::linear(*backend, part(input), jobs);
        }
        one.insert(one.end(), two.begin(), two.end());
        one.insert(one.end(), fine.begin(), fine.end());
        if (expected.empty()) expected = one;
        EXPECT_TRUE(same_bits(one, expected)) << to_string(act) << ", " << threads << " threads, pieces of " << cut;
      }
    }
  }
}

struct Stream {
  std::unique_ptr<StreamState> state;
  std::vector<float> queries, keys, values;  // [positions][...]
};

constexpr AttentionShape kShape{6, 2, 32, 0.17f};
constexpr int kPositions = 70;

// Stores and attends every stream's rows in pieces of `cut`, all streams in one call.
std::vector<float> attend_all(Backend& backend, const std::vector<Stream>& streams, const std::vector<CacheView>& views,
                              int cut) {
  const int query_width = kShape.heads * kShape.dim, kv_width = kShape.kv_heads * kShape.dim;
  std::vector<float> result(streams.size() * kPositions * static_cast<std::size_t>(query_width));
  for (int first = 0; first < kPositions; first += cut) {
    const int rows = std::min(cut, kPositions - first);
    std::vector<float> queries, keys, values;
    std::vector<Piece> pieces;
    const auto take = [&](std::vector<float>& to, const std::vector<float>& from, int width) {
      to.insert(to.end(), from.begin() + first * width, from.begin() + (first + rows) * width);
    };
    for (const Stream& stream : streams) {
      pieces.push_back({stream.state.get(), static_cast<int>(pieces.size()) * rows, rows, first});
      take(queries, stream.queries, query_width);
      take(keys, stream.keys, kv_width);
      take(values, stream.values, kv_width);
    }
    const int all = rows * static_cast<int>(streams.size());
    std::vector<float> out(queries.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto of_piece = [&](std::vector<float>& side) {
        return Matrix(matrix(side, all).row(pieces[i].first_row), rows, kv_width);
      };
      ops::store_kv(backend, of_piece(keys), of_piece(values), views[i], first);
    }
    ops::attention(backend, matrix(queries, all), kShape, pieces, views, matrix(out, all));
    for (std::size_t i = 0; i < pieces.size(); ++i)
      std::copy_n(out.begin() + pieces[i].first_row * query_width, rows * query_width,
                  result.begin() + (static_cast<std::ptrdiff_t>(i) * kPositions + first) * query_width);
  }
  return result;
}

TEST(CpuBackend, AttentionHasTheSameBitsForAnyThreadsPiecesAndPages) {
  Dice dice(2);
  for (const DType dtype : {DType::kBF16, DType::kF8E4M3, DType::kF32}) {
    std::vector<float> expected;
    std::vector<Stream> streams(3);
    for (Stream& stream : streams) {
      stream.queries = normal_floats(dice, std::size_t{kPositions} * 6 * 32);
      stream.keys = normal_floats(dice, std::size_t{kPositions} * 2 * 32);
      stream.values = normal_floats(dice, std::size_t{kPositions} * 2 * 32);
    }
    for (const int threads : {1, 3}) {
      const auto backend = make(threads);
      for (const int cut : {kPositions, 1, 7, 16, 33}) {
        for (const bool paged : {false, true}) {
          // Pages of 32 positions from one pool, handed out in an order of our own.
          constexpr int kPages = 3;
          CacheShape cache;
          cache.layers = 1;
          cache.kv_heads = kShape.kv_heads;
          cache.dim = kShape.dim;
          cache.dtype = dtype;
          auto pool = KvMemory::create(*backend, cache, std::size_t{32} * kPages * streams.size());
          ASSERT_TRUE(pool);
          std::vector<std::int32_t> table(kPages * streams.size());
          std::iota(table.begin(), table.end(), 0);
          std::shuffle(table.begin(), table.end(), dice);
          std::vector<CacheView> views;
          for (std::size_t i = 0; i < streams.size(); ++i) {
            auto state = StreamState::create(*backend, cache, kPositions);
            ASSERT_TRUE(state);
            streams[i].state = std::move(*state);
            views.push_back(streams[i].state->view(0));
            if (!paged) continue;
            views.back().pages = table.data() + i * kPages;
            views.back().page_shift = 5;
            views.back().page_positions = 32;
            pool->place(cache, 0, views.back());
          }
          const auto got = attend_all(*backend, streams, views, cut);
          if (expected.empty()) expected = got;
          EXPECT_TRUE(same_bits(got, expected))
              << threads << " threads, pieces of " << cut << (paged ? ", paged" : ", whole");
        }
      }
    }
  }
}

TEST(CpuBackend, EmbedGatherAndNormsAreRowByRow) {
  Dice dice(3);
  const auto one = make(1), three = make(3);
  const MemoryAffine reader(dice, 50, 64, 3, 32, DType::kF16, false);
  auto table = one->pack(reader, {});
  ASSERT_TRUE(table);
  std::vector<TokenId> ids(40);
  for (TokenId& id : ids) id = static_cast<TokenId>(dice() % 50);
  std::vector<float> rows(40 * 64), again(40 * 64), expected(64);
  ops::embed(*one, **table, ids, matrix(rows, 40));
  ops::embed(*three, **table, ids, matrix(again, 40));
  EXPECT_TRUE(same_bits(rows, again));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    expand_row(reader, ids[i], expected.data());
    EXPECT_TRUE(same_bits(
        {rows.begin() + static_cast<std::ptrdiff_t>(i) * 64, rows.begin() + static_cast<std::ptrdiff_t>(i + 1) * 64},
        expected));
  }
  const std::vector<int> wanted = {39, 0, 7, 7};
  std::vector<float> gathered(4 * 64);
  ops::gather(*one, matrix(rows, 40), wanted, matrix(gathered, 4));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::size_t k = 0; k < 64; ++k)
      EXPECT_EQ(gathered[i * 64 + k], rows[static_cast<std::size_t>(wanted[i]) * 64 + k]);
  // head_norm of 4 heads of 16 is rms_norm of each.
  const auto weight = normal_floats(dice, 16);
  auto heads = rows, parts = rows;
  ops::head_norm(*three, matrix(heads, 40), 4, 16, weight.data(), 1e-6f);
  ops::rms_norm(*one, matrix(parts, 160), weight.data(), 1e-6f, matrix(parts, 160));
  EXPECT_TRUE(same_bits(heads, parts));
}

TEST(CpuBackend, RopeRotatesTheFirstDimsOfEachHead) {
  Dice dice(4);
  const auto backend = make(2);
  constexpr int kRows = 9, kHeads = 3, kDim = 32, kRotated = 16;
  auto x = normal_floats(dice, std::size_t{kRows} * kHeads * kDim);
  const auto before = x;
  std::vector<float> cosine(kRows * kRotated / 2), sine(cosine.size());
  for (std::size_t i = 0; i < cosine.size(); ++i)
    cosine[i] = std::cos(0.3f * static_cast<float>(i)), sine[i] = std::sin(0.3f * static_cast<float>(i));
  ops::rope(*backend, matrix(x, kRows), kHeads, kDim, {cosine.data(), sine.data(), kRotated});
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t head = 0; head < kHeads; ++head) {
      const std::size_t at = (row * kHeads + head) * kDim;
      for (std::size_t i = 0; i < kRotated / 2; ++i) {
        const float c = cosine[row * kRotated / 2 + i], s = sine[row * kRotated / 2 + i], a = before[at + i],
                    b = before[at + i + kRotated / 2];
        EXPECT_EQ(x[at + i], a * c - b * s);
        EXPECT_EQ(x[at + i + kRotated / 2], b * c + a * s);
      }
      for (std::size_t i = kRotated; i < kDim; ++i) EXPECT_EQ(x[at + i], before[at + i]);
    }
  }
}

}  // namespace
}  // namespace steadfast::test
