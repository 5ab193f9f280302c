// The attention kernel: against softmax in float64, alike on every instruction set, for queries together and alone, on
// pages and whole, and blind to whatever lies behind a row's position.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel_cases.h"

namespace steadfast::test {
namespace {

constexpr int kHeads = 2;  // key-value heads in the cache; the tests read the second

// A cache of one layer in the layout of cache/cache_view.h, written element by element.
class Cache {
 public:
  // page_shift 30: one page that holds everything.
  Cache(Dice& dice, int positions, int dim, cpu::KvType type, int page_shift)
      : dim_(dim),
        type_(type),
        shift_(page_shift),
        page_(page_shift < 30 ? 1 << page_shift : (positions + 15) / 16 * 16) {
    pages_.resize(static_cast<std::size_t>((positions + page_ - 1) / page_));
    for (std::size_t i = 0; i < pages_.size(); ++i) pages_[i] = static_cast<std::int32_t>(i);
    std::shuffle(pages_.begin(), pages_.end(), dice);
    const auto elements = pages_.size() * static_cast<std::size_t>(kHeads * page_ * dim);
    for (auto* side : {&keys_, &values_}) side->assign(elements, std::numeric_limits<float>::quiet_NaN());
    for (auto* side : {&key_scales_, &value_scales_})
      side->assign(pages_.size() * static_cast<std::size_t>(kHeads * page_), std::numeric_limits<float>::quiet_NaN());
  }

  // What the cache holds of a row, expanded.
  std::vector<float> stored(const float* row) const {
    std::vector<float> result(row, row + dim_);
    const float scale = scale_of(row);
    for (float& x : result) {
      if (type_ == cpu::KvType::kBF16) x = bf16_to_f32(f32_to_bf16(x));
      if (type_ == cpu::KvType::kF8) x = f8e4m3_to_f32(f32_to_f8e4m3(x / scale)) * scale;
    }
    return result;
  }
  void fill(const std::vector<float>& keys, const std::vector<float>& values, int positions) {
    for (int p = 0; p < positions; ++p) {
      const float *key = keys.data() + p * dim_, *value = values.data() + p * dim_;
      const float key_scale = scale_of(key), value_scale = scale_of(value);
      for (int d = 0; d < dim_; ++d) {
        keys_[at(p) + static_cast<std::size_t>(within(p) / 16 * 16 * dim_ + d * 16 + p % 16)] = key[d] / key_scale;
        values_[at(p) + static_cast<std::size_t>(within(p) * dim_ + d)] = value[d] / value_scale;
      }
      key_scales_[scale_at(p)] = key_scale;
      value_scales_[scale_at(p)] = value_scale;
    }
    narrow();
  }
  // What no key or value was written to: NaN to begin with.
  void replace_nan(float by) {
    for (auto* side : {&keys_, &values_, &key_scales_, &value_scales_})
      for (float& x : *side)
        if (std::isnan(x)) x = by;
    narrow();
  }

  cpu::KvView view() const {
    cpu::KvView view;
    view.keys = side(keys_, short_keys_, byte_keys_);
    view.values = side(values_, short_values_, byte_values_);
    view.pages = pages_.data();
    view.page_shift = shift_;
    view.page_stride = std::ptrdiff_t{kHeads} * page_ * dim_;
    view.head_offset = std::ptrdiff_t{1} * page_ * dim_;
    view.dim = dim_;
    view.type = type_;
    view.key_scales = key_scales_.data();
    view.value_scales = value_scales_.data();
    view.scale_page_stride = std::ptrdiff_t{kHeads} * page_;
    view.scale_head_offset = page_;
    return view;
  }

 private:
  int within(int position) const { return position % page_; }
  std::size_t at(int position) const {
    const auto page = static_cast<std::size_t>(pages_[static_cast<std::size_t>(position / page_)]);
    return (page * kHeads + 1) * static_cast<std::size_t>(page_ * dim_);
  }
  std::size_t scale_at(int position) const {
    return at(position) / static_cast<std::size_t>(dim_) + static_cast<std::size_t>(within(position));
  }
  float scale_of(const float* row) const {
    if (type_ != cpu::KvType::kF8) return 1.0f;
    float amax = 0;
    for (int d = 0; d < dim_; ++d) amax = std::max(amax, std::fabs(row[d]));
    return f8e4m3_scale(amax);
  }
  const void* side(const std::vector<float>& floats, const std::vector<std::uint16_t>& shorts,
                   const std::vector<std::uint8_t>& bytes) const {
    if (type_ == cpu::KvType::kBF16) return shorts.data();
    if (type_ == cpu::KvType::kF8) return bytes.data();
    return floats.data();
  }
  void narrow() {
    const auto convert = [](const std::vector<float>& from, auto& to, auto fn) {
      to.resize(from.size());
      std::transform(from.begin(), from.end(), to.begin(), fn);
    };
    convert(keys_, short_keys_, f32_to_bf16);
    convert(values_, short_values_, f32_to_bf16);
    convert(keys_, byte_keys_, f32_to_f8e4m3);
    convert(values_, byte_values_, f32_to_f8e4m3);
  }

  int dim_;
  cpu::KvType type_;
  int shift_, page_;
  std::vector<std::int32_t> pages_;
  std::vector<float> keys_, values_, key_scales_, value_scales_;
  std::vector<std::uint16_t> short_keys_, short_values_;
  std::vector<std::uint8_t> byte_keys_, byte_values_;
};

constexpr cpu::KvType kTypes[] = {cpu::KvType::kF32, cpu::KvType::kBF16, cpu::KvType::kF8};
constexpr const char* kTypeNames[] = {"f32", "bf16", "fp8"};

struct Case {
  int length, dim;
  cpu::KvType type;
  std::vector<float> keys, values, queries;  // [length][dim], [length][dim], [4][dim]
  float scale;

  Case(Dice& dice, int case_length, int case_dim, cpu::KvType case_type)
      : length(case_length), dim(case_dim), type(case_type), scale(1 / std::sqrt(static_cast<float>(case_dim))) {
    const auto size = static_cast<std::size_t>(length * dim);
    keys = normal_floats(dice, size, 1.5f);
    values = normal_floats(dice, size);
    queries = normal_floats(dice, static_cast<std::size_t>(cpu::kMaxQueries * dim), 1.5f);
  }
  std::string name() const {
    return fmt::format("{} positions, dim {}, {}", length, dim, kTypeNames[static_cast<int>(type)]);
  }
};

// Queries of the case at the given positions; [queries][dim].
std::vector<float> attend(const cpu::Kernels& kernels, const Case& c, const cpu::KvView& view,
                          const std::vector<int>& which, const std::vector<int>& positions) {
  std::vector<float> out(which.size() * static_cast<std::size_t>(c.dim), kUntouched);
  std::vector<float> scratch(static_cast<std::size_t>(cpu::attention_scratch(c.dim)),
                             std::numeric_limits<float>::quiet_NaN());
  cpu::AttentionCall call;
  call.kv = view;
  call.scale = c.scale;
  call.scratch = scratch.data();
  call.queries = static_cast<int>(which.size());
  for (std::size_t q = 0; q < which.size(); ++q) {
    call.query[q] = c.queries.data() + which[q] * c.dim;
    call.out[q] = out.data() + q * static_cast<std::size_t>(c.dim);
    call.position[q] = positions[q];
  }
  kernels.attention(call);
  return out;
}

// Softmax attention in double. bound: scores carry gamma of their chain and of the scaling, the exponent one rounding
// of s - max; each moves a weight by that much, twice (weight and sum). Exponentials (2 ulp), the factors of folded
// spans, sums and products of at most 512 steps and the division make the rest.
void expect_softmax(const Case& c, const Cache& cache, const float* query, int position, const float* got) {
  std::vector<double> scores;
  double peak = -INFINITY, lowest = INFINITY, score_error = 0;
  for (int p = 0; p <= position; ++p) {
    double dot = 0, size = 0;
    const auto key = cache.stored(c.keys.data() + p * c.dim);
    for (int d = 0; d < c.dim; ++d) {
      const double term = static_cast<double>(query[d]) * static_cast<double>(key[static_cast<std::size_t>(d)]);
      dot += term;
      size += std::fabs(term);
    }
    const double scale = c.scale;
    scores.push_back(dot * scale);
    score_error = std::max(score_error, gamma_n(c.dim + 1) * size * scale);
    peak = std::max(peak, scores.back());
    lowest = std::min(lowest, scores.back());
  }
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - peak);
  const double spans = position / 512 + 1;
  const double relative =
      2 * std::expm1(2 * score_error + 2 * kRoundoff * (peak - lowest)) + gamma_n(2 * (512 + 6 * spans + 20));
  std::vector<std::vector<float>> values;
  for (int p = 0; p <= position; ++p) values.push_back(cache.stored(c.values.data() + p * c.dim));
  for (int d = 0; d < c.dim; ++d) {
    double exact = 0, size = 0;
    for (int p = 0; p <= position; ++p) {
      const auto at = static_cast<std::size_t>(p);
      const double term = scores[at] / total * static_cast<double>(values[at][static_cast<std::size_t>(d)]);
      exact += term;
      size += std::fabs(term);
    }
    ASSERT_NEAR(got[d], exact, relative * size + 1e-30) << "position " << position << ", dim " << d;
  }
}

template <typename Fn>
void for_cases(Dice& dice, Fn fn) {
  for (const int length : {1, 15, 16, 17, 511, 512, 513, 1100})
    for (const int dim : {16, 64, 80, 128, 256})
      for (const auto type : kTypes) fn(Case(dice, length, dim, type));
}

TEST(Attention, IsSoftmaxWithinItsBoundAndAlikeOnEveryInstructionSet) {
  Dice dice(1);
  for_cases(dice, [&](const Case& c) {
    SCOPED_TRACE(c.name());
    Cache cache(dice, c.length, c.dim, c.type, 30);
    cache.fill(c.keys, c.values, c.length);
    const auto expected = attend(*machine_kernels().back(), c, cache.view(), {0}, {c.length - 1});
    expect_softmax(c, cache, c.queries.data(), c.length - 1, expected.data());
    for (const cpu::Kernels* kernels : machine_kernels())
      EXPECT_TRUE(same_bits(attend(*kernels, c, cache.view(), {0}, {c.length - 1}), expected)) << kernels->name;
  });
}

// Positions of up to four queries in the last block of 16, as a unit of the backend holds them.
std::vector<int> last_positions(const Case& c, std::size_t count) {
  const int first = (c.length - 1) / 16 * 16;
  std::vector<int> positions;
  for (std::size_t q = 0; q < count; ++q)
    positions.push_back(std::max(first, c.length - 1 - 3 * static_cast<int>(count - 1 - q)));
  return positions;
}

TEST(Attention, QueriesTogetherEqualEachAlone) {
  Dice dice(2);
  for_cases(dice, [&](const Case& c) {
    SCOPED_TRACE(c.name());
    Cache cache(dice, c.length, c.dim, c.type, 30);
    cache.fill(c.keys, c.values, c.length);
    for (const cpu::Kernels* kernels : machine_kernels()) {
      if (kernels != machine_kernels().back() && c.length > 520) continue;  // the slow tables: two spans are enough
      for (std::size_t count = 2; count <= 4; ++count) {
        const auto positions = last_positions(c, count);
        std::vector<int> which;
        for (std::size_t q = 0; q < count; ++q) which.push_back(static_cast<int>(q));
        const auto together = attend(*kernels, c, cache.view(), which, positions);
        for (std::size_t q = 0; q < count; ++q) {
          const auto alone = attend(*kernels, c, cache.view(), {which[q]}, {positions[q]});
          const auto at = together.begin() + static_cast<std::ptrdiff_t>(q) * c.dim;
          ASSERT_TRUE(same_bits({at, at + c.dim}, alone)) << kernels->name << ", query " << q << " of " << count;
        }
      }
    }
  });
}

TEST(Attention, WhatLiesBehindTheRowNeverReachesIt) {
  Dice dice(3);
  for (const int length : {1, 5, 15, 16, 17, 511, 513, 700}) {
    for (const auto type : kTypes) {
      const Case c(dice, length, 80, type);
      SCOPED_TRACE(c.name());
      Cache planted(dice, length + 40, c.dim, type, 30);  // NaN behind the last position and in the head beside
      planted.fill(c.keys, c.values, length);
      Cache clean = planted;
      clean.replace_nan(0);
      for (const cpu::Kernels* kernels : machine_kernels()) {
        const auto with_nan = attend(*kernels, c, planted.view(), {0}, {length - 1});
        EXPECT_TRUE(same_bits(with_nan, attend(*kernels, c, clean.view(), {0}, {length - 1}))) << kernels->name;
        for (const float x : with_nan) ASSERT_TRUE(std::isfinite(x)) << kernels->name;
      }
    }
  }
}

// Together with queries at later positions of its block, a row still sees its own positions alone.
TEST(Attention, LaterRowsOfItsBlockNeverReachARow) {
  Dice dice(4);
  for (const int length : {16, 48, 528}) {
    Case c(dice, length, 64, cpu::KvType::kF32);
    const int first = length - 16;
    for (int d = 0; d < c.dim; ++d) {  // the last position's key and value are NaN
      c.keys[static_cast<std::size_t>((length - 1) * c.dim + d)] = NAN;
      c.values[static_cast<std::size_t>((length - 1) * c.dim + d)] = NAN;
    }
    Cache cache(dice, length, c.dim, c.type, 30);
    cache.fill(c.keys, c.values, length);
    for (const cpu::Kernels* kernels : machine_kernels()) {
      const auto out = attend(*kernels, c, cache.view(), {0, 1, 2, 3}, {first, first + 7, length - 2, length - 1});
      for (std::size_t i = 0; i < static_cast<std::size_t>(3 * c.dim); ++i)
        ASSERT_TRUE(std::isfinite(out[i])) << kernels->name << ", " << i;
    }
  }
}

TEST(Attention, PagesEqualOneWhole) {
  Dice dice(5);
  for_cases(dice, [&](const Case& c) {
    SCOPED_TRACE(c.name());
    Cache whole(dice, c.length, c.dim, c.type, 30);
    whole.fill(c.keys, c.values, c.length);
    for (const cpu::Kernels* kernels : machine_kernels()) {
      if (kernels != machine_kernels().back() && c.length > 520) continue;
      const auto positions = last_positions(c, 4);
      const auto expected = attend(*kernels, c, whole.view(), {0, 1, 2, 3}, positions);
      for (const int shift : {4, 5, 8}) {
        Cache paged(dice, c.length, c.dim, c.type, shift);
        paged.fill(c.keys, c.values, c.length);
        EXPECT_TRUE(same_bits(attend(*kernels, c, paged.view(), {0, 1, 2, 3}, positions), expected))
            << kernels->name << ", shift " << shift;
        EXPECT_TRUE(same_bits(attend(*kernels, c, paged.view(), {0}, {c.length - 1}),
                              attend(*kernels, c, whole.view(), {0}, {c.length - 1})))
            << kernels->name << ", shift " << shift;
      }
    }
  });
}

// One key far above the others, in the first or a later span: the fold's factors under- and overflow nothing.
TEST(Attention, OneLoudKeyTakesEverything) {
  Dice dice(6);
  for (const int loud : {0, 300, 511, 512, 1099}) {
    Case c(dice, 1100, 16, cpu::KvType::kF32);
    for (int d = 0; d < c.dim; ++d)
      c.keys[static_cast<std::size_t>(loud * c.dim + d)] = 200 * c.queries[static_cast<std::size_t>(d)];
    Cache cache(dice, c.length, c.dim, c.type, 30);
    cache.fill(c.keys, c.values, c.length);
    for (const cpu::Kernels* kernels : machine_kernels()) {
      const auto out = attend(*kernels, c, cache.view(), {0}, {c.length - 1});
      for (std::size_t d = 0; d < out.size(); ++d)
        ASSERT_FLOAT_EQ(out[d], c.values[static_cast<std::size_t>(loud * c.dim) + d])
            << kernels->name << ", loud " << loud;
    }
  }
}

}  // namespace
}  // namespace steadfast::test
