// Rows to bf16. A norm's row is one block's work and its sums are norm.h's; a gated norm's head is one warp's; the rest
// is element by element, 8 a thread.
#include "backend/cuda/device/fragments.h"
#include "backend/cuda/device/math.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/linear_input.h"

namespace steadfast::cuda {
namespace {

constexpr int kRowThreads = 1024;
constexpr int kHeld = 8;  // values of a row that a thread of the norm keeps in registers
constexpr int kPieceThreads = 128;
constexpr int kHeadWarps = 8;

struct Target {
  std::uint8_t* data;
  int padded_rows, chunks;

  // Where input k of a row lies.
  __device__ std::uint8_t* at(int row, int k) const {
    const int piece = k % kChunk / 8 ^ (row & 7);
    const std::size_t line =
        static_cast<std::size_t>(k / kChunk) * static_cast<std::size_t>(padded_rows) + static_cast<std::size_t>(row);
    return data + line * kChunkRowBytes + piece * 16 + k % 8 * 2;
  }
  __device__ void store(int row, int k, float value) const {
    *reinterpret_cast<__nv_bfloat16*>(at(row, k)) = __float2bfloat16_rn(value);
  }
};

__global__ void __launch_bounds__(kRowThreads) rms_norm_rows(Matrix x, const float* weight, float eps, Target to) {
  __shared__ float shared[kRowThreads / 32];
  begin_next();
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const float* from = x.data + row * x.stride;
  float held[kHeld], gains[kHeld], squares = 0;
#pragma unroll
  for (int n = 0; n < kHeld; ++n) {  // no launch writes weights
    const int i = thread + n * kRowThreads;
    gains[n] = i < x.width ? weight[i] : 0.0f;
  }
  wait_for_earlier();
#pragma unroll
  for (int n = 0; n < kHeld; ++n) {
    const int i = thread + n * kRowThreads;
    held[n] = i < x.width ? from[i] : 0.0f;
  }
#pragma unroll
  for (int n = 0; n < kHeld; ++n)
    if (thread + n * kRowThreads < x.width) squares = __fmaf_rn(held[n], held[n], squares);
  for (int i = thread + kHeld * kRowThreads; i < x.width; i += kRowThreads)
    squares = __fmaf_rn(from[i], from[i], squares);
  const float sum = block_sum<kRowThreads / 32>(squares, shared);
  const float factor = inverse_root(__fdiv_rn(sum, static_cast<float>(x.width)) + eps);
#pragma unroll
  for (int n = 0; n < kHeld; ++n) {
    const int i = thread + n * kRowThreads;
    if (i < x.width) to.store(row, i, held[n] * factor * gains[n]);
  }
  for (int i = thread + kHeld * kRowThreads; i < x.width; i += kRowThreads)
    to.store(row, i, from[i] * factor * weight[i]);
  for (int i = x.width + thread; i < to.chunks * kChunk; i += kRowThreads) to.store(row, i, 0.0f);
}

__global__ void __launch_bounds__(kHeadWarps * 32)
    gated_norm_rows(Matrix x, Matrix gate, int heads, int dim, const float* weight, float eps, Target to) {
  begin_next();
  wait_for_earlier();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int unit = static_cast<int>(blockIdx.x) * kHeadWarps + static_cast<int>(threadIdx.x) / 32;
  if (unit >= x.rows * heads) return;
  const int row = unit / heads, first = unit % heads * dim;
  const float* from = x.data + row * x.stride + first;
  const float* gates = gate.data + row * gate.stride + first;
  float squares = 0;
  for (int i = lane; i < dim; i += 32) squares = __fmaf_rn(from[i], from[i], squares);
  const float factor = inverse_root(__fdiv_rn(warp_sum(squares), static_cast<float>(dim)) + eps);
  for (int i = lane; i < dim; i += 32) to.store(row, first + i, from[i] * factor * weight[i] * silu(gates[i]));
  if (first + dim == x.width)
    for (int i = x.width + lane; i < to.chunks * kChunk; i += 32) to.store(row, i, 0.0f);
}

__device__ inline void load8(const float* from, bool aligned, int count, float (&v)[8]) {
  if (aligned && count >= 8) {
    const float4 a = *reinterpret_cast<const float4*>(from), b = *reinterpret_cast<const float4*>(from + 4);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] = i < count ? from[i] : 0.0f;
}

template <Prologue kPrologue>
__global__ void __launch_bounds__(kPieceThreads) pieces(Matrix x, Matrix gate, bool aligned, Target to) {
  begin_next();
  wait_for_earlier();
  const int row = static_cast<int>(blockIdx.y);
  const int k = static_cast<int>(blockIdx.x * kPieceThreads + threadIdx.x) * 8;
  if (k >= to.chunks * kChunk) return;
  float v[8], g[8];
  load8(x.data + row * x.stride + k, aligned, x.width - k, v);
  if constexpr (kPrologue != Prologue::kPlain) {
    load8(gate.data + row * gate.stride + k, aligned, x.width - k, g);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (k + i < x.width) v[i] = kPrologue == Prologue::kSiluMul ? silu(v[i]) * g[i] : v[i] * sigmoid(g[i]);
  }
  *reinterpret_cast<uint4*>(to.at(row, k)) = make_uint4(round_bf16x2(v[0], v[1]), round_bf16x2(v[2], v[3]),
                                                        round_bf16x2(v[4], v[5]), round_bf16x2(v[6], v[7]));
}

bool is_aligned(const Matrix& m) { return reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0 && m.stride % 4 == 0; }

void launch_pieces(Recorder& recorder, const LinearInput& input, const Target& to) {
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(divide_up(to.chunks * kChunk / 8, kPieceThreads)),
                    static_cast<unsigned>(input.x.rows));
  shape.block.x = kPieceThreads;
  shape.early = true;
  const bool aligned = is_aligned(input.x) && is_aligned(input.gate);
  const auto kernel = input.prologue == Prologue::kPlain     ? pieces<Prologue::kPlain>
                      : input.prologue == Prologue::kSiluMul ? pieces<Prologue::kSiluMul>
                                                             : pieces<Prologue::kSigmoidMul>;
  recorder.launch("linear's rows to bf16", kernel, shape, input.x, input.gate, aligned, to);
}

}  // namespace

void write_linear_input(Recorder& recorder, const LinearInput& input, int padded_rows, std::uint8_t* data) {
  const Target to{data, padded_rows, chunks_of(input.x.width)};
  LaunchShape shape;
  shape.early = true;
  if (input.prologue == Prologue::kRmsNorm) {
    shape.grid.x = static_cast<unsigned>(input.x.rows);
    shape.block.x = kRowThreads;
    recorder.launch("linear's rows, rms_norm", rms_norm_rows, shape, input.x, input.weight, input.eps, to);
  } else if (input.prologue == Prologue::kGatedNorm) {
    CHECK(input.heads * input.dim == input.x.width, "gated_norm: {} heads of {} in rows of {}", input.heads, input.dim,
          input.x.width);
    shape.grid.x = static_cast<unsigned>(divide_up(input.x.rows * input.heads, kHeadWarps));
    shape.block.x = kHeadWarps * 32;
    recorder.launch("linear's rows, gated_norm", gated_norm_rows, shape, input.x, input.gate, input.heads, input.dim,
                    input.weight, input.eps, to);
  } else {
    launch_pieces(recorder, input, to);
  }
}

}  // namespace steadfast::cuda
