// A strip's chunk (16 features, 64 inputs) from shared memory into A fragments of mma.m16n8k16 and wgmma, expanded to
// bf16 once. bf16 scales: one fused multiply-add of bf16 pairs, rounded once. Float scales: fma in fp32, then rounded
// to bf16. Codes need no conversion: placed in the low bits of a bf16 they are subnormals, exact multiples of one power
// of two that the packed scale makes good (linear_plan.h).
#pragma once

#include <cuda_bf16.h>

#include <type_traits>

#include "backend/cuda/device/mma.h"
#include "backend/cuda/linear_plan.h"

namespace steadfast::cuda {

template <int kStep, int kLast, typename Body>
__device__ void for_steps(Body&& body) {
  if constexpr (kStep < kLast) {
    body(std::integral_constant<int, kStep>{});
    for_steps<kStep + 1, kLast>(body);
  }
}

__device__ inline std::uint32_t fma_bf16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

__device__ inline std::uint32_t round_bf16x2(float low, float high) {
  std::uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

// Code i of four bytes as a float.
template <int kByte>
__device__ inline float code_float(std::uint32_t bytes) {
  return __uint_as_float(__byte_perm(bytes, 0x4B000000u, 0x7440 | kByte)) - 8388608.0f;
}

template <Form kForm>
struct Fragments {
  static constexpr int kVectors = code_bytes(kForm) / 512;
  static constexpr int kGroups = groups_per_chunk(kForm);
  static constexpr bool kFloat = float_scales(kForm);
  static constexpr bool kEights = code_bytes(kForm) == 1024;

  uint4 codes[kVectors];
  std::uint32_t scales[kGroups > 0 ? kGroups : 1][kFloat ? 4 : 2];  // (scale, bias) of feature g, then of g + 8

  __device__ void load(std::uint32_t at, int lane) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) codes[v] = load_shared16(at + v * 512 + lane * 16);
#pragma unroll
    for (int u = 0; u < kGroups; ++u) {
      const std::uint32_t from = at + code_bytes(kForm) + u * group_bytes(kForm) + lane / 4 * (kFloat ? 16 : 8);
      if constexpr (kFloat) {
        const uint4 v = load_shared16(from);
        scales[u][0] = v.x, scales[u][1] = v.y, scales[u][2] = v.z, scales[u][3] = v.w;
      } else {
        const uint2 v = load_shared8(from);
        scales[u][0] = v.x, scales[u][1] = v.y;
      }
    }
  }

  // The fragment of k16 step kStep.
  template <int kStep>
  __device__ void expand(std::uint32_t (&a)[4]) const {
    if constexpr (kForm == Form::kDense) {
      const uint4 v = codes[kStep];
      a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
    } else {
      const uint4 v = codes[kEights ? kStep / 2 : 0];
      const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
      constexpr int kGroup = kGroups == 2 ? kStep / 2 : 0;
      if constexpr (kEights)
        expand_eight(words[kStep % 2 * 2], words[kStep % 2 * 2 + 1], scales[kGroup], a);
      else
        expand_four(words[kStep], scales[kGroup], a);
    }
  }

 private:
  static __device__ void halves(const std::uint32_t* pair, std::uint32_t (&scale)[2], std::uint32_t (&bias)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      scale[i] = __byte_perm(pair[i], 0, 0x1010);
      bias[i] = __byte_perm(pair[i], 0, 0x3232);
    }
  }

  static __device__ std::uint32_t float_pair(float low, float high, const std::uint32_t* pair) {
    const float scale = __uint_as_float(pair[0]), bias = __uint_as_float(pair[1]);
    return round_bf16x2(__fmaf_rn(low, scale, bias), __fmaf_rn(high, scale, bias));
  }

  static __device__ void expand_four(std::uint32_t word, const std::uint32_t* pair, std::uint32_t (&a)[4]) {
    if constexpr (kFloat) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t two = word >> (4 * j) & 0x000F000Fu;
        a[j] = float_pair(code_float<0>(two), code_float<2>(two), pair + (j & 1) * 2);
      }
    } else {
      std::uint32_t scale[2], bias[2];
      halves(pair, scale, bias);
      const std::uint32_t later = word >> 8;  // shifts to the left need not go through the busy integer unit
      a[0] = fma_bf16x2(word << 4 & 0x00F000F0u, scale[0], bias[0]);
      a[1] = fma_bf16x2(word & 0x00F000F0u, scale[1], bias[1]);
      a[2] = fma_bf16x2(later << 4 & 0x00F000F0u, scale[0], bias[0]);
      a[3] = fma_bf16x2(later & 0x00F000F0u, scale[1], bias[1]);
    }
  }

  static __device__ void expand_eight(std::uint32_t first, std::uint32_t second, const std::uint32_t* pair,
                                      std::uint32_t (&a)[4]) {
    if constexpr (kFloat) {
      a[0] = float_pair(code_float<0>(first), code_float<2>(first), pair);
      a[1] = float_pair(code_float<1>(first), code_float<3>(first), pair + 2);
      a[2] = float_pair(code_float<0>(second), code_float<2>(second), pair);
      a[3] = float_pair(code_float<1>(second), code_float<3>(second), pair + 2);
    } else {
      std::uint32_t scale[2], bias[2];
      halves(pair, scale, bias);
      a[0] = fma_bf16x2(first & 0x00FF00FFu, scale[0], bias[0]);
      a[1] = fma_bf16x2(first >> 8 & 0x00FF00FFu, scale[1], bias[1]);
      a[2] = fma_bf16x2(second & 0x00FF00FFu, scale[0], bias[0]);
      a[3] = fma_bf16x2(second >> 8 & 0x00FF00FFu, scale[1], bias[1]);
    }
  }
};

}  // namespace steadfast::cuda
