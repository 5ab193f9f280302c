// The arithmetic of a row's scores, weights and sums, common to every schedule (docs/arithmetic.md, attention on CUDA).
// A thread holds two rows (0 and 1) of a 16 x 64 tile of scores as mma leaves it: s[4 j + e] is row e / 2, position
// 8 j + 2 t + e % 2, t = lane % 4; the four threads of a quad share the rows.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace steadfast::cuda {

constexpr float kLowest = -1e30f;

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float multiply_flush(float x, float y) {
  float z;
  asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
__device__ __forceinline__ float add_flush(float x, float y) {
  float z;
  asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// References and sums of two rows: of a span, or of all spans so far.
struct RowTotals {
  float r0, r1, l0, l1;
};

// A span's references and sums of two rows as they grow; even, odd: the classes of positions 2 t and 2 t + 1 mod 8.
struct RowSums {
  float m0, m1, even0, odd0, even1, odd1;

  __device__ __forceinline__ void start() {
    m0 = m1 = kLowest;
    even0 = odd0 = even1 = odd1 = 0.0f;
  }
  // Sums over the quad: ((0+1)+(2+3))+((4+5)+(6+7)).
  __device__ __forceinline__ RowTotals rows() const {
    float l0 = even0 + odd0, l1 = even1 + odd1;
    l0 += __shfl_xor_sync(0xFFFFFFFFu, l0, 1);
    l1 += __shfl_xor_sync(0xFFFFFFFFu, l1, 1);
    l0 += __shfl_xor_sync(0xFFFFFFFFu, l0, 2);
    l1 += __shfl_xor_sync(0xFFFFFFFFu, l1, 2);
    return {m0, m1, l0, l1};
  }
};

__device__ __forceinline__ void mask_scores(float (&s)[32], int first_position, int p0, int p1) {
  const int at = first_position + 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int key = at + 8 * j;
    if (key > p0) s[4 * j] = -INFINITY;
    if (key + 1 > p0) s[4 * j + 1] = -INFINITY;
    if (key > p1) s[4 * j + 2] = -INFINITY;
    if (key + 1 > p1) s[4 * j + 3] = -INFINITY;
  }
}

// Scores become weights, rounded to bf16 and held as floats. true: a reference of the warp's rows rose, and what was
// summed so far must be multiplied by c0 and c1, powers of two (the sums here already are).
__device__ __forceinline__ bool weigh_scores(float (&s)[32], RowSums& sums, float log2_scale, float& c0, float& c1) {
  float x0 = fmaxf(s[0], s[1]), x1 = fmaxf(s[2], s[3]);
#pragma unroll
  for (int j = 1; j < 8; ++j) {
    x0 = fmaxf(x0, fmaxf(s[4 * j], s[4 * j + 1]));
    x1 = fmaxf(x1, fmaxf(s[4 * j + 2], s[4 * j + 3]));
  }
  x0 = fmaxf(x0, __shfl_xor_sync(0xFFFFFFFFu, x0, 1));
  x1 = fmaxf(x1, __shfl_xor_sync(0xFFFFFFFFu, x1, 1));
  x0 = fmaxf(x0, __shfl_xor_sync(0xFFFFFFFFu, x0, 2));
  x1 = fmaxf(x1, __shfl_xor_sync(0xFFFFFFFFu, x1, 2));
  const float n0 = ceilf(__fmul_rn(x0, log2_scale)), n1 = ceilf(__fmul_rn(x1, log2_scale));
  const bool rises0 = n0 > sums.m0 + 8.0f, rises1 = n1 > sums.m1 + 8.0f;
  const bool rises = __any_sync(0xFFFFFFFFu, rises0 || rises1);
  if (rises) {
    c0 = rises0 ? exp2_fast(sums.m0 - n0) : 1.0f;
    c1 = rises1 ? exp2_fast(sums.m1 - n1) : 1.0f;
    if (rises0) sums.m0 = n0;
    if (rises1) sums.m1 = n1;
    sums.even0 *= c0;
    sums.odd0 *= c0;
    sums.even1 *= c1;
    sums.odd1 *= c1;
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t z0 = pack_bf16(exp2_fast(__fmaf_rn(s[4 * j], log2_scale, -sums.m0)),
                                       exp2_fast(__fmaf_rn(s[4 * j + 1], log2_scale, -sums.m0)));
    const std::uint32_t z1 = pack_bf16(exp2_fast(__fmaf_rn(s[4 * j + 2], log2_scale, -sums.m1)),
                                       exp2_fast(__fmaf_rn(s[4 * j + 3], log2_scale, -sums.m1)));
    s[4 * j] = __uint_as_float(z0 << 16);
    s[4 * j + 1] = __uint_as_float(z0 & 0xFFFF0000u);
    s[4 * j + 2] = __uint_as_float(z1 << 16);
    s[4 * j + 3] = __uint_as_float(z1 & 0xFFFF0000u);
    sums.even0 += s[4 * j];
    sums.odd0 += s[4 * j + 1];
    sums.even1 += s[4 * j + 2];
    sums.odd1 += s[4 * j + 3];
  }
  return rises;
}

// p[4 k .. 4 k + 3]: the A operand of positions 16 k .. 16 k + 15.
__device__ __forceinline__ void pack_weights(const float (&s)[32], std::uint32_t (&p)[16]) {
#pragma unroll
  for (int x = 0; x < 16; ++x) p[x] = __byte_perm(__float_as_uint(s[2 * x]), __float_as_uint(s[2 * x + 1]), 0x7632);
}

// How a span joins the totals: values so far times d0, d1 (where `rescale`), then plus the span's times f0, f1.
struct FoldFactors {
  float f0 = 1.0f, f1 = 1.0f, d0 = 1.0f, d1 = 1.0f;
  bool rescale = false;
};

__device__ __forceinline__ float span_factor(float m, float& reference, float& down) {
  down = 1.0f;
  if (m - reference > 64.0f) {
    down = exp2_fast(reference - m);
    reference = m;
  }
  return exp2_fast(m - reference);
}

// A span joins the totals. first: the rows' first span.
__device__ __forceinline__ FoldFactors fold_rows(const RowTotals& span, bool first, RowTotals& totals) {
  FoldFactors factors;
  if (first) {
    totals = span;
    return factors;
  }
  factors.f0 = span_factor(span.r0, totals.r0, factors.d0);
  factors.f1 = span_factor(span.r1, totals.r1, factors.d1);
  factors.rescale = __any_sync(0xFFFFFFFFu, factors.d0 != 1.0f || factors.d1 != 1.0f);
  if (factors.rescale) {
    totals.l0 = multiply_flush(totals.l0, factors.d0);
    totals.l1 = multiply_flush(totals.l1, factors.d1);
  }
  totals.l0 = add_flush(totals.l0, multiply_flush(span.l0, factors.f0));
  totals.l1 = add_flush(totals.l1, multiply_flush(span.l1, factors.f1));
  return factors;
}

// Totals of two rows' values in global memory, float4: two dims of row 0, two of row 1.
__device__ __forceinline__ float4 read_total(const float4* at) {
  float4 z;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(z.x), "=f"(z.y), "=f"(z.z), "=f"(z.w)
               : "l"(at)
               : "memory");
  return z;
}
__device__ __forceinline__ void write_total(float4* at, float4 z) {
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(z.x), "f"(z.y), "f"(z.z), "f"(z.w)
               : "memory");
}
// In order with the totals' reads, so that registers are not filled with reads ahead.
__device__ __forceinline__ void write_pair(float* at, float x, float y) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(at), "f"(x), "f"(y) : "memory");
}

__device__ __forceinline__ float4 scaled(float4 z, float x0, float x1) {
  return {multiply_flush(z.x, x0), multiply_flush(z.y, x0), multiply_flush(z.z, x1), multiply_flush(z.w, x1)};
}
template <int kCount>
__device__ __forceinline__ float4 four(const float (&o)[kCount], int x) {
  return {o[4 * x], o[4 * x + 1], o[4 * x + 2], o[4 * x + 3]};
}
// A span's values z joined to the total t.
__device__ __forceinline__ float4 joined(float4 t, float4 z, const FoldFactors& factors) {
  if (factors.rescale) t = scaled(t, factors.d0, factors.d1);
  z = scaled(z, factors.f0, factors.f1);
  return {add_flush(t.x, z.x), add_flush(t.y, z.y), add_flush(t.z, z.z), add_flush(t.w, z.w)};
}

// A row's value: never -0, so that tiles without a visible position change no bit.
__device__ __forceinline__ float finish(float total, float inverse) {
  return __fadd_rn(__fmul_rn(total, inverse), 0.0f);
}

}  // namespace steadfast::cuda
