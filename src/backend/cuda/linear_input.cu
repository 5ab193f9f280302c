// Rows to bf16. A norm's row is one block's work; a gated norm's head is one warp's; the rest is element by element, 8
// a thread.
#include "backend/cuda/device/fragments.h"
#include "backend/cuda/device/math.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/device/strip_norm.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/linear_input.h"

namespace steadfast::cuda {
namespace {

constexpr int kRowThreads = 320;
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

__device__ inline void load8(const float* from, bool aligned, int count, float (&v)[8]) {
  if (aligned && count >= 8) {
    const float4 a = *reinterpret_cast<const float4*>(from), b = *reinterpret_cast<const float4*>(from + 4);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] = i < count ? from[i] : 0.0f;
}

// Rows times the norm's weight, and the factor that the norm would have multiplied them by. A thread has 16 inputs at a
// time; their squares are added as device/strip_norm.h says.
__global__ void __launch_bounds__(kRowThreads)
    rms_norm_rows(Matrix x, const float* weight, float eps, bool aligned, Target to, float* factors) {
  __shared__ float strips[kRowThreads];
  begin_next();
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const float* from = x.data + row * x.stride;
  float sum = 0;
  for (int first = 0; first < to.chunks * kChunk; first += kRowThreads * kStripFeatures) {
    const int k = first + thread * kStripFeatures;
    const bool inside = k < to.chunks * kChunk;
    float v[2][8], gain[2][8];
    if (inside)  // no launch writes weights
      for (int h = 0; h < 2; ++h) load8(weight + k + h * 8, aligned, x.width - k - h * 8, gain[h]);
    if (first == 0) wait_for_earlier();
    strips[thread] = 0;
    if (inside) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        load8(from + k + h * 8, aligned, x.width - k - h * 8, v[h]);
        float y[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) y[i] = v[h][i] * gain[h][i];
        *reinterpret_cast<uint4*>(to.at(row, k + h * 8)) = make_uint4(
            round_bf16x2(y[0], y[1]), round_bf16x2(y[2], y[3]), round_bf16x2(y[4], y[5]), round_bf16x2(y[6], y[7]));
      }
      strips[thread] = strip_squares(v[0], v[1]);
    }
    __syncthreads();
    if (thread < 32) sum = add_strips(sum, strips, kRowThreads, thread);
    __syncthreads();
  }
  if (thread < 32) {
    sum = warp_sum(sum);
    if (thread == 0) factors[row] = norm_factor(sum, x.width, eps);
  }
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
  const float factor = norm_factor(warp_sum(squares), dim, eps);
  for (int i = lane; i < dim; i += 32) to.store(row, first + i, from[i] * factor * weight[i] * silu(gates[i]));
  if (first + dim == x.width)
    for (int i = x.width + lane; i < to.chunks * kChunk; i += 32) to.store(row, i, 0.0f);
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

void write_linear_input(Recorder& recorder, const LinearInput& input, int padded_rows, std::uint8_t* data,
                        float* factors) {
  const Target to{data, padded_rows, chunks_of(input.x.width)};
  LaunchShape shape;
  shape.early = true;
  if (input.prologue == Prologue::kRmsNorm) {
    shape.grid.x = static_cast<unsigned>(input.x.rows);
    shape.block.x = kRowThreads;
    const bool aligned = is_aligned(input.x) && reinterpret_cast<std::uintptr_t>(input.weight) % 16 == 0;
    recorder.launch("linear's rows, rms_norm", rms_norm_rows, shape, input.x, input.weight, input.eps, aligned, to,
                    factors);
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
