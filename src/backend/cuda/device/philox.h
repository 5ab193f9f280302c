// Philox4x32-10 and the Gumbel noise of rows/draw.cc on the card: the same words, the same bits.
#pragma once

#include <cstdint>

#include "backend/cuda/device/exact.h"

namespace steadfast::cuda {

// The first word of Philox4x32-10 for counter (c0, 0, 0, 0).
__device__ inline std::uint32_t philox_word(std::uint32_t c0, std::uint64_t key) {
  std::uint32_t c[4] = {c0, 0, 0, 0};
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t a = __umulhi(0xD2511F53u, c[0]), b = __umulhi(0xCD9E8D57u, c[2]);
    const std::uint32_t low_a = 0xD2511F53u * c[0], low_b = 0xCD9E8D57u * c[2];
    c[0] = b ^ c[1] ^ k0;
    c[1] = low_b;
    c[2] = a ^ c[3] ^ k1;
    c[3] = low_a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c[0];
}

__device__ inline float gumbel(std::uint32_t key, int token) {
  auto x = static_cast<std::int32_t>(philox_word(static_cast<std::uint32_t>(token), key));
  if (x < 0) x = -x - 1;
  constexpr float kSmallest = 4.6566127342e-10f;
  const float u = fmaxf(static_cast<float>(x) * kSmallest, kSmallest);
  return static_cast<float>(-exact_log(-exact_log1m(static_cast<double>(u))));
}

}  // namespace steadfast::cuda
