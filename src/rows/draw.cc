// Philox4x32-10 and Gumbel noise as vLLM's sampler defines them (model-spec 9.3), and the maximum over noisy logits.
// Logarithms are our own (base/exact_math.h): no platform library decides a token.
#include "rows/draw.h"

#include <algorithm>
#include <cmath>

#include "base/exact_math.h"

namespace steadfast {
namespace {

std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }

constexpr float kSmallestUniform = 4.6566127342e-10f;
constexpr float kLargestGumbel = 21.5f;  // above -ln(-ln(1 - kSmallestUniform)) = 21.4876

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::uint64_t key) {
  std::uint32_t k0 = low(key), k1 = high(key);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {high(b) ^ c[1] ^ k0, low(b), high(a) ^ c[3] ^ k1, low(a)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

std::uint32_t draw_key(std::uint64_t seed, std::int64_t position) {
  const auto wide = static_cast<std::uint64_t>(position);
  return philox4x32({low(wide), high(wide), 0, 0}, seed)[0];
}

float gumbel(std::uint32_t key, TokenId token) {
  const std::uint32_t word = philox4x32({static_cast<std::uint32_t>(token), 0, 0, 0}, key)[0];
  auto x = static_cast<std::int32_t>(word);
  if (x < 0) x = -x - 1;
  const float u = std::max(static_cast<float>(x) * kSmallestUniform, kSmallestUniform);
  // -ln(-ln(1 - u)): fine steps of noise lie at the winning end.
  return static_cast<float>(-exact_log(-exact_log1m(static_cast<double>(u))));
}

TokenId draw(std::span<float> logits, const SamplingParams& sampling, std::int64_t position, DrawScratch& scratch) {
  const auto lowest_best = [&] {
    std::size_t best = 0;
    for (std::size_t i = 1; i < logits.size(); ++i)
      if (logits[i] > logits[best] || std::isnan(logits[best])) best = i;
    return static_cast<TokenId>(best);
  };
  if (sampling.temperature < 1e-5f) return lowest_best();
  filter(logits, sampling, scratch);
  const std::uint32_t key = draw_key(sampling.seed, position);
  const auto score_of = [&](std::size_t i) { return logits[i] + gumbel(key, static_cast<TokenId>(i)); };
  // The largest logit first: no noise exceeds kLargestGumbel, so most other ids need none drawn.
  auto best = static_cast<std::size_t>(lowest_best());
  float best_score = score_of(best);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] + kLargestGumbel >= best_score) || !(logits[i] > -INFINITY)) continue;
    const float score = score_of(i);
    if (score > best_score || (score == best_score && i < best)) {
      best = i;
      best_score = score;
    }
  }
  return static_cast<TokenId>(best);
}

}  // namespace steadfast
