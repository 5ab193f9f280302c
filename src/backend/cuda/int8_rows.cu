// Rows to int8. A thread takes 16 inputs, 2 or 4 neighbouring lanes a group. Norms: one block a row finds the factors
// first, in the order of norm.h, and reads the row again; the rest is element by element.
#include "backend/cuda/device/math.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/int8_rows.h"

namespace steadfast::cuda {
namespace {

constexpr int kBlock = 16;  // inputs of a thread
constexpr int kRowThreads = 1024;
constexpr int kPieceThreads = 128;
constexpr int kMostHeads = 1024;
constexpr float kLeast = 0x1p-100f;

// 16 values of a row from input k on, by all lanes of the group's.
__device__ inline void store_block(const QuantisedRows& to, int row, int k, const float (&v)[kBlock]) {
  unsigned largest = 0;  // of the bits: a NaN is above infinity
#pragma unroll
  for (int i = 0; i < kBlock; ++i) largest = max(largest, __float_as_uint(v[i]) & 0x7FFFFFFFu);
  for (int distance = 1; distance < to.group / kBlock; distance *= 2)
    largest = max(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, distance));
  const float m = __uint_as_float(largest);
  const float factor = m >= kLeast ? __fdiv_rn(127.0f, m) : 0.0f;
  const float scale = m < kLeast ? 0.0f : __fdiv_rn(m, 127.0f);
  unsigned words[4] = {};
  int sum = 0;
#pragma unroll
  for (int i = 0; i < kBlock; ++i) {
    const int code = __float2int_rn(v[i] * factor), at = i % 8 * 2 + i / 8;
    sum += code;
    words[at / 4] |= (static_cast<unsigned>(code) & 0xFFu) << (at % 4 * 8);
  }
  for (int distance = 1; distance < to.group / kBlock; distance *= 2)
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
  if (k >= to.chunks * kChunk) return;
  const auto padded = static_cast<std::size_t>(to.padded_rows), r = static_cast<std::size_t>(row);
  const int piece = k % kChunk / kBlock ^ (row / 2 % 4);
  *reinterpret_cast<uint4*>(to.codes + (static_cast<std::size_t>(k / kChunk) * padded + r) * kChunk + piece * kBlock) =
      make_uint4(words[0], words[1], words[2], words[3]);
  if (k % to.group == 0)
    reinterpret_cast<float2*>(to.scales)[static_cast<std::size_t>(k / to.group) * padded + r] =
        make_float2(scale, scale * static_cast<float>(sum));
}

__device__ inline void load_block(const float* from, bool aligned, int count, float (&v)[kBlock]) {
  if (aligned && count >= kBlock) {
#pragma unroll
    for (int i = 0; i < kBlock; i += 4) {
      const float4 a = *reinterpret_cast<const float4*>(from + i);
      v[i] = a.x, v[i + 1] = a.y, v[i + 2] = a.z, v[i + 3] = a.w;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kBlock; ++i) v[i] = i < count ? from[i] : 0.0f;
}

// The row's blocks, by a block of threads: `finish` makes value i of the block that begins at input k.
template <typename Finish>
__device__ void store_row(const Matrix& x, bool aligned, const QuantisedRows& to, int row, Finish&& finish) {
  const int blocks = to.chunks * (kChunk / kBlock);
  for (int first = 0; first < blocks; first += kRowThreads) {  // by all lanes of a warp: they meet in shuffles
    const int k = (first + static_cast<int>(threadIdx.x)) * kBlock;
    float v[kBlock];
    load_block(x.data + row * x.stride + k, aligned, x.width - k, v);
#pragma unroll
    for (int i = 0; i < kBlock; ++i)
      if (k + i < x.width) v[i] = finish(k + i, v[i]);
    store_block(to, row, k, v);
  }
}

__global__ void __launch_bounds__(kRowThreads)
    int8_rms_norm(Matrix x, const float* weight, float eps, bool aligned, QuantisedRows to) {
  __shared__ float shared[kRowThreads / 32];
  begin_next();
  wait_for_earlier();
  const int row = static_cast<int>(blockIdx.x);
  const float* from = x.data + row * x.stride;
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < x.width; i += kRowThreads)
    squares = __fmaf_rn(from[i], from[i], squares);
  const float sum = block_sum<kRowThreads / 32>(squares, shared);
  const float factor = norm_factor(sum, x.width, eps);
  store_row(x, aligned, to, row, [=](int k, float value) { return value * factor * weight[k]; });
}

__global__ void __launch_bounds__(kRowThreads)
    int8_gated_norm(Matrix x, Matrix gate, int heads, int dim, const float* weight, float eps, bool aligned,
                    QuantisedRows to) {
  __shared__ float factors[kMostHeads];
  begin_next();
  wait_for_earlier();
  const int row = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x) % 32;
  for (int head = static_cast<int>(threadIdx.x) / 32; head < heads; head += kRowThreads / 32) {
    const float* from = x.data + row * x.stride + head * dim;
    float squares = 0;
    for (int i = lane; i < dim; i += 32) squares = __fmaf_rn(from[i], from[i], squares);
    const float factor = norm_factor(warp_sum(squares), dim, eps);
    if (lane == 0) factors[head] = factor;
  }
  __syncthreads();
  const float* gates = gate.data + row * gate.stride;
  store_row(x, aligned, to, row,
            [=](int k, float value) { return value * factors[k / dim] * weight[k % dim] * silu(gates[k]); });
}

template <Prologue kPrologue>
__global__ void __launch_bounds__(kPieceThreads) int8_pieces(Matrix x, Matrix gate, bool aligned, QuantisedRows to) {
  begin_next();
  wait_for_earlier();
  const int row = static_cast<int>(blockIdx.y);
  const int k = static_cast<int>(blockIdx.x * kPieceThreads + threadIdx.x) * kBlock;
  float v[kBlock];
  load_block(x.data + row * x.stride + k, aligned, x.width - k, v);
  if constexpr (kPrologue != Prologue::kPlain) {
    float g[kBlock];
    load_block(gate.data + row * gate.stride + k, aligned, x.width - k, g);
#pragma unroll
    for (int i = 0; i < kBlock; ++i)
      if (k + i < x.width) v[i] = kPrologue == Prologue::kSiluMul ? silu(v[i]) * g[i] : v[i] * sigmoid(g[i]);
  }
  store_block(to, row, k, v);
}

bool is_aligned(const Matrix& m) { return reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0 && m.stride % 4 == 0; }

}  // namespace

void quantise_rows(Recorder& recorder, const LinearInput& input, const QuantisedRows& to) {
  LaunchShape shape;
  shape.early = true;
  shape.grid.x = static_cast<unsigned>(input.x.rows);
  shape.block.x = kRowThreads;
  const bool aligned = is_aligned(input.x);
  if (input.prologue == Prologue::kRmsNorm) {
    recorder.launch("int8 linear's rows, rms_norm", int8_rms_norm, shape, input.x, input.weight, input.eps, aligned,
                    to);
    return;
  }
  if (input.prologue == Prologue::kGatedNorm) {
    CHECK(input.heads * input.dim == input.x.width && input.heads <= kMostHeads,
          "gated_norm: {} heads of {} in rows of {}", input.heads, input.dim, input.x.width);
    recorder.launch("int8 linear's rows, gated_norm", int8_gated_norm, shape, input.x, input.gate, input.heads,
                    input.dim, input.weight, input.eps, aligned, to);
    return;
  }
  shape.grid = dim3(static_cast<unsigned>(divide_up(to.chunks * kChunk / kBlock, kPieceThreads)),
                    static_cast<unsigned>(input.x.rows));
  shape.block.x = kPieceThreads;
  const auto kernel = input.prologue == Prologue::kPlain     ? int8_pieces<Prologue::kPlain>
                      : input.prologue == Prologue::kSiluMul ? int8_pieces<Prologue::kSiluMul>
                                                             : int8_pieces<Prologue::kSigmoidMul>;
  recorder.launch("int8 linear's rows", kernel, shape, input.x, input.gate, aligned && is_aligned(input.gate), to);
}

}  // namespace steadfast::cuda
