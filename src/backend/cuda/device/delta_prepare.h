// What rows need before S is touched: convolution and silu (a chain over the taps, oldest first), norms of queries and
// keys (a lane's four channels in a chain, lanes by butterfly), gates, and the matrices T and M of their chunk. Used
// for many rows (delta_front.cu) and for one (delta_one.cu): the same operations in the same order.
#pragma once

#include "backend/cuda/delta_kernels.h"
#include "backend/cuda/device/copy_ring.h"
#include "backend/cuda/device/math.h"
#include "backend/cuda/device/operands.h"

namespace steadfast::cuda {

constexpr int kMatrixStride = 20;  // floats a row of a 16x16 matrix in shared memory
constexpr int kBatch = 4;          // rows of the convolution whose loads are in flight together

// kWorkers: warps that prepare value heads; kHeads: value heads of the block.
template <int kKeyDim, int kWorkers, int kHeads>
struct Prepared {
  alignas(16) __nv_bfloat16 keys[kChunk][kKeyDim + 8], queries[kChunk][kKeyDim + 8];
  alignas(16) float key_key[kChunk][kMatrixStride], query_key[kChunk][kMatrixStride];
  alignas(16) float first[kWorkers][kChunk][kMatrixStride], second[kWorkers][kChunk][kMatrixStride];
  float log[kHeads][kChunk], beta[kHeads][kChunk];
};

// ln(1 + z) for z in [0, 1]: twice the inverse hyperbolic tangent of z / (2 + z).
__device__ inline float log_one_plus(float z) {
  const float s = __fdiv_rn(z, 2.0f + z), squared = s * s;
  float sum = 1.0f / 17;
#pragma unroll
  for (int k = 15; k >= 1; k -= 2) sum = __fmaf_rn(sum, squared, 1.0f / static_cast<float>(k));
  return 2.0f * s * sum;
}

// The card's own 2^x, 1/x and 1/sqrt(x): a target is one architecture, so they are as fixed as any routine. Errors of a
// few units in the last place; most of them vanish in a rounding to bf16.
__device__ inline float quick_silu(float x) {
  float power, inverse;
  asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(power) : "f"(x * -1.44269504f));
  asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(inverse) : "f"(1.0f + power));
  return x * inverse;
}

__device__ inline float quick_inverse_root(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float quick_exp(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(power) : "f"(x * 1.44269504f));
  return power;
}

__device__ inline float softplus(float x) { return fmaxf(x, 0.0f) + log_one_plus(exp_f32(-fabsf(x))); }

// Four neighbouring channels of the rows around a chunk.
struct Channels {
  const float *x, *ring;
  std::ptrdiff_t x_stride;
  int width, position, start;

  __device__ float4 at(int row) const {
    const float* from = row >= start ? x + row * x_stride
                                     : ring + static_cast<std::ptrdiff_t>((position + row) & (kDeltaTaps - 1)) * width;
    return *reinterpret_cast<const float4*>(from);
  }
};

__device__ inline float4 multiply_add(const float4& w, const float4& x, const float4& sum) {
  return {__fmaf_rn(w.x, x.x, sum.x), __fmaf_rn(w.y, x.y, sum.y), __fmaf_rn(w.z, x.z, sum.z),
          __fmaf_rn(w.w, x.w, sum.w)};
}

// x * (1 / sqrt(sum x^2 + 1e-6)) * scale over the kLanes lanes that hold a head's row.
template <int kLanes>
__device__ float4 normed(const float4& y, float scale) {
  float sum = y.x * y.x;
  sum = __fmaf_rn(y.y, y.y, sum);
  sum = __fmaf_rn(y.z, y.z, sum);
  sum = __fmaf_rn(y.w, y.w, sum);
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance >>= 1) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
  const float factor = quick_inverse_root(sum + 1e-6f) * scale;
  return {y.x * factor, y.y * factor, y.z * factor, y.w * factor};
}

// This thread's four channels: queries first, then keys, then `values` quads of values.
struct Quad {
  int channel;
  bool is_query, is_key, active;
  int value;  // quad among the values
};

template <int kKeyDim>
__device__ Quad quad_of(const DeltaLayout& layout, int key_head, int values, int thread) {
  constexpr int kKeys = kKeyDim / 4;
  Quad quad{0, thread < kKeys, thread >= kKeys && thread < 2 * kKeys, thread < 2 * kKeys + values, thread - 2 * kKeys};
  if (quad.is_query) quad.channel = key_head * kKeyDim + 4 * thread;
  if (quad.is_key) quad.channel = layout.key_width + key_head * kKeyDim + 4 * (thread - kKeys);
  return quad;
}

// This thread's channels on their way: rows of x, where their bf16 rows go, and for queries and keys their place in
// shared memory. history: the three rows before.
struct Track {
  const float* x;
  std::ptrdiff_t x_stride, to_stride;
  __nv_bfloat16 *to, *shared;
  float4 weight[kDeltaTaps], history[3];
  float scale;
  bool active, is_head;
};

// kRows rows. kNormed: the warp holds queries or keys.
template <int kKeyDim, int kRows, bool kNormed>
__device__ __forceinline__ void convolve(Track& track) {
  float4 x[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) x[i] = *reinterpret_cast<const float4*>(track.x + i * track.x_stride);
  track.x += kRows * track.x_stride;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float4 y = multiply_add(track.weight[0], track.history[0], float4{});
    y = multiply_add(track.weight[1], track.history[1], y);
    y = multiply_add(track.weight[2], track.history[2], y);
    y = multiply_add(track.weight[3], x[i], y);
    track.history[0] = track.history[1];
    track.history[1] = track.history[2];
    track.history[2] = x[i];
    y = {quick_silu(y.x), quick_silu(y.y), quick_silu(y.z), quick_silu(y.w)};
    if constexpr (kNormed) {
      const float4 normed_y = normed<kKeyDim / 4>(y, track.scale);
      if (track.is_head) y = normed_y;
    }
    const uint2 packed{pack_bf16(y.x, y.y), pack_bf16(y.z, y.w)};
    if (track.active) *reinterpret_cast<uint2*>(track.to + i * track.to_stride) = packed;
    if constexpr (kNormed)
      if (track.is_head) *reinterpret_cast<uint2*>(track.shared + i * (kKeyDim + 8)) = packed;
  }
  track.to += kRows * track.to_stride;
  if constexpr (kNormed) track.shared += kRows * (kKeyDim + 8);
}

template <int kKeyDim, bool kNormed>
__device__ __forceinline__ void convolve_rows(Track& track, int rows) {
#pragma unroll 1
  for (; rows >= kBatch; rows -= kBatch) convolve<kKeyDim, kBatch, kNormed>(track);
#pragma unroll 1
  for (; rows > 0; --rows) convolve<kKeyDim, 1, kNormed>(track);
}

// The log decay and beta of one row and value head: of earlier rows from the state, the decay cumulative.
struct Gate {
  float log = 0, beta = 0;
};

__device__ inline Gate gate_of(const DeltaFrontParams& p, const DeltaUnit& unit, int begin, int row, int head) {
  const DeltaLayout& layout = p.layout;
  const auto at = static_cast<std::size_t>(head) * kChunk + static_cast<std::size_t>(row);
  if (row < begin) return {unit.state[layout.c + at], unit.state[layout.beta + at]};
  if (row >= unit.end) return {};
  const float a = p.a[(unit.row + row) * p.a_stride + head], b = p.b[(unit.row + row) * p.b_stride + head];
  return {p.a_weight[head] * softplus(a + p.dt_bias[head]), sigmoid(b)};
}

// Cumulative log decays and betas of the chunk's rows: gate number i is row i % 16 of value head i / 16. Cumulative by
// chains, each row's lane for itself: the lanes of a head are half a warp, so whole halves call.
template <class P>
__device__ void cumulate(const Gate& gate, int i, int gates, int begin, P& shared) {
  const unsigned lanes = i / 32 * 32 + 32 > gates ? 0x0000FFFFu : 0xFFFFFFFFu;
  float sum = 0;
#pragma unroll
  for (int row = 0; row < kChunk; ++row) {
    const float log = __shfl_sync(lanes, gate.log, i % 32 / kChunk * kChunk + row);
    if (row <= i % kChunk) sum = row < begin ? log : sum + log;
  }
  shared.log[i / kChunk][i % kChunk] = sum;
  shared.beta[i / kChunk][i % kChunk] = gate.beta;
}

// Key times key and query times key, [row][earlier row], the keys as operand A.
template <int kKeyDim, class P>
__device__ void dots(P& shared) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4, t = lane % 4;
  for (int task = warp; task < 4; task += static_cast<int>(blockDim.x) / 32) {
    const int tile = task % 2;
    const bool of_query = task >= 2;
    const __nv_bfloat16(*from)[kKeyDim + 8] = of_query ? shared.queries : shared.keys;
    float sum[4] = {};
#pragma unroll
    for (int k = 0; k < kKeyDim / 16; ++k) {
      std::uint32_t a[4];
      load_matrices(a, shared_address(&shared.keys[lane % 16][k * 16 + lane / 16 * 8]));
      const __nv_bfloat16* b = &from[tile * 8 + g][k * 16 + 2 * t];
      mma_bf16(sum, a, *reinterpret_cast<const std::uint32_t*>(b), *reinterpret_cast<const std::uint32_t*>(b + 8));
    }
    float(*to)[kMatrixStride] = of_query ? shared.query_key : shared.key_key;
    const int row = tile * 8 + 2 * t;
    to[row][g] = sum[0];
    to[row + 1][g] = sum[1];
    to[row][g + 8] = sum[2];
    to[row + 1][g + 8] = sum[3];
  }
}

// T into `first` and M into `second`, in place of A and P. Lane: column lane % 16; both halves of the warp make T.
__device__ inline void solve(float (*first)[kMatrixStride], float (*second)[kMatrixStride]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, column = lane % kChunk, half = lane / kChunk;
  float t[kChunk], m[kChunk / 2];
#pragma unroll
  for (int row = 0; row < kChunk; ++row) {
    float x = row == column ? 1.0f : 0.0f;
#pragma unroll
    for (int i = 0; i < row; ++i) x = __fmaf_rn(-first[row][i], t[i], x);
    t[row] = x;
  }
#pragma unroll
  for (int pair = 0; pair < kChunk / 2; ++pair) {
    m[pair] = 0;
#pragma unroll
    for (int i = 0; i < 2 * pair + 2; ++i) m[pair] = __fmaf_rn(second[2 * pair + half][i], t[i], m[pair]);
  }
  __syncwarp();
#pragma unroll
  for (int row = 0; row < kChunk; ++row)
    if (row / 8 == half) first[row][column] = t[row];
#pragma unroll
  for (int pair = 0; pair < kChunk / 2; ++pair) second[2 * pair + half][column] = m[pair];
  __syncwarp();
}

// A 16x16 matrix as operand B of u times it: [tile of 8 rows][lane].
__device__ inline void store_fragments(const float (*matrix)[kMatrixStride], std::byte* to) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int tile = 0; tile < 2; ++tile) {
    const float* row = &matrix[tile * 8 + g][2 * t];
    uint4 fragment;
    split_bf16(row[0], row[1], fragment.x, fragment.z);
    split_bf16(row[8], row[9], fragment.y, fragment.w);
    reinterpret_cast<uint4*>(to)[tile * 32 + lane] = fragment;
  }
}

// One warp: what DeltaAux holds, of the unit's rows [begin, end), for the block's value head number `ratio`.
template <class P>
__device__ void prepare_head(int begin, int end, int ratio, int worker, std::byte* aux, P& shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float(*first)[kMatrixStride] = shared.first[worker];
  float(*second)[kMatrixStride] = shared.second[worker];
  const float(&log)[kChunk] = shared.log[ratio];
  const float(&beta)[kChunk] = shared.beta[ratio];
#pragma unroll
  for (int i = lane; i < kChunk * kChunk; i += 32) {
    const int row = i / kChunk, column = i % kChunk;
    const bool known = row < end && column <= row;
    const float decay = known ? quick_exp(log[row] - log[column]) : 0.0f;
    first[row][column] = known && column < row ? beta[row] * shared.key_key[row][column] * decay : 0.0f;
    second[row][column] = known && row >= begin ? shared.query_key[row][column] * decay : 0.0f;
  }
  __syncwarp();
  solve(first, second);
  store_fragments(second, aux + DeltaAux::kM);
  const bool ends = end == kChunk;
  if (ends) store_fragments(first, aux + DeltaAux::kT);
  auto* gate = reinterpret_cast<float*>(aux + DeltaAux::kGates);
  if (lane < end) {
    const float decay = quick_exp(log[lane]);
    gate[DeltaAux::kBeta + lane] = beta[lane];
    gate[DeltaAux::kBetaDecay + lane] = beta[lane] * decay;
    gate[DeltaAux::kDecay + lane] = decay;
    gate[DeltaAux::kLog + lane] = log[lane];
    if (ends) gate[DeltaAux::kRest + lane] = quick_exp(log[kChunk - 1] - log[lane]);
    if (ends && lane == 0) gate[DeltaAux::kWhole] = quick_exp(log[kChunk - 1]);
  }
}

// Earlier rows' keys come from the stream's state, as copies to be waited for. Rows behind the unit's may be anything:
// nothing of theirs is used.
template <int kKeyDim, class P>
__device__ void earlier_keys(const DeltaLayout& layout, const float* state, int begin, int key_head, P& shared) {
  constexpr int kPieces = kKeyDim / 8;
  const auto* kept = reinterpret_cast<const uint4*>(state + layout.k) + key_head * kChunk * kPieces;
  for (int i = static_cast<int>(threadIdx.x); i < begin * kPieces; i += static_cast<int>(blockDim.x))
    copy_16(shared_address(&shared.keys[i / kPieces][i % kPieces * 8]), kept + i);
}

// The weights of four channels; absent taps are zero.
__device__ inline void load_weights(const DeltaFrontParams& p, int channel, float4 (&weight)[kDeltaTaps]) {
#pragma unroll
  for (int tap = 0; tap < kDeltaTaps; ++tap) {
    const int from = tap - (kDeltaTaps - p.taps);
    weight[tap] =
        from < 0 ? float4{} : *reinterpret_cast<const float4*>(p.conv_weight + from * p.layout.conv_width + channel);
  }
}

}  // namespace steadfast::cuda
