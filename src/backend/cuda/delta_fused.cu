// The delta rule for few pieces of one row, convolution and all in one launch: a block holds one head and up to 64
// value dims of S, which come to shared memory while the block prepares the row (device/delta_prepare.h; blocks of one
// key head prepare the same). Then the arithmetic of delta_one.cu, the row's key and query as the two first columns of
// one product. S is read only, but at a chunk's end.
#include "backend/cuda/delta_kernels.h"
#include "backend/cuda/device/copy_ring.h"
#include "backend/cuda/device/delta_parts.h"
#include "backend/cuda/device/delta_prepare.h"
#include "backend/cuda/device/wait.h"

namespace steadfast::cuda {
namespace {

using bf16 = __nv_bfloat16;
constexpr int kThreads = 128;  // the first kWarps of its warps hold S

template <int kKeyDim, int kWarps>
struct FusedShared {
  alignas(128) float4 state[kWarps][kKeyDim / 8][32];
  Prepared<kKeyDim, 1, 1> row;
  alignas(16) std::byte aux[DeltaAux::kBytes];
  alignas(16) bf16 values[kWarps * 16];
};

template <int kKeyDim>
__device__ const float4* state_of(const DeltaUnit& unit, int tile) {
  return reinterpret_cast<const float4*>(unit.state) + static_cast<std::ptrdiff_t>(tile) * kKeyDim * 4;
}

// Key, query and this block's values of the row, in shared memory.
template <int kKeyDim, int kWarps>
__device__ void convolve_row(const DeltaFrontParams& p, const DeltaUnit& unit, const Quad& quad,
                             const float4 (&weight)[kDeltaTaps], FusedShared<kKeyDim, kWarps>& shared) {
  const int row = unit.start, thread = static_cast<int>(threadIdx.x);
  const Channels channels{p.x + unit.row * p.x_stride + quad.channel,
                          unit.conv + quad.channel,
                          p.x_stride,
                          p.layout.conv_width,
                          unit.position,
                          row};
  Track track;
#pragma unroll
  for (int i = 0; i < 3; ++i) track.history[i] = channels.at(row - 3 + i);
#pragma unroll
  for (int tap = 0; tap < kDeltaTaps; ++tap) track.weight[tap] = weight[tap];
  track.x = channels.x + row * p.x_stride;
  track.x_stride = track.to_stride = 0;
  track.to = shared.values + 4 * max(quad.value, 0);
  track.active = quad.active && quad.value >= 0;
  track.is_head = quad.is_query || quad.is_key;
  track.scale = quad.is_query ? p.query_scale : 1.0f;
  track.shared = (quad.is_query ? shared.row.queries : shared.row.keys)[row] + 4 * (thread % (kKeyDim / 4));
  if (thread / 32 * 32 < kKeyDim / 2)
    convolve<kKeyDim, 1, true>(track);
  else if (quad.active)
    convolve<kKeyDim, 1, false>(track);
}

__device__ void fetch_line(const void* line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }

// Brings nearer what the block reads of the stream's state, and reads none of it: a launch before may still write it.
template <int kKeyDim, int kWarps>
__device__ void fetch_state(const DeltaLayout& layout, const DeltaUnit& unit, const Place& place, int channel,
                            const float4* state) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  if (warp < kWarps)
    for (int line = lane; line < kKeyDim / 2; line += 32) fetch_line(state + line * 8);
  const int value_dim = layout.value_dim;
  if (warp == 0 && lane < 2 * unit.start)  // 64 value dims of a row are two lines
    fetch_line(unit.state + layout.u + static_cast<std::ptrdiff_t>(place.head * kChunk + lane / 2) * value_dim +
               place.first_dim % value_dim + lane % 2 * 32 % (kWarps * 16));
  if (warp == 1 && lane * 64 < unit.start * kKeyDim)
    fetch_line(unit.state + layout.k + place.key_head * kChunk * kKeyDim / 2 + lane * 32);
  if (warp == 2 && lane < 2) fetch_line(unit.state + (lane == 0 ? layout.c : layout.beta) + place.head * kChunk);
  if (lane % 8 == 0)
    for (int back = 1; back < kDeltaTaps; ++back)
      fetch_line(unit.conv +
                 static_cast<std::ptrdiff_t>((unit.position + unit.start - back) & (kDeltaTaps - 1)) *
                     layout.conv_width +
                 channel);
}

// What later rows of the stream need, but u; by all warps but the first.
template <int kKeyDim, int kWarps>
__device__ void keep_row(const DeltaFrontParams& p, const DeltaUnit& unit, const Place& place,
                         const FusedShared<kKeyDim, kWarps>& shared) {
  const DeltaLayout& layout = p.layout;
  const int row = unit.start, thread = static_cast<int>(threadIdx.x) - 32;
  keep_history(layout, unit, p.x, p.x_stride, p.taps, thread, kThreads - 32);
  if (unit.end == kChunk || place.part > 0) return;
  if (thread == 0) {
    const auto at = static_cast<std::size_t>(place.head) * kChunk + static_cast<std::size_t>(row);
    unit.state[layout.c + at] = shared.row.log[0][row];
    unit.state[layout.beta + at] = shared.row.beta[0][row];
  }
  constexpr int kPieces = kKeyDim / 8;
  if (layout.value_head(place.key_head, 0) != place.head || thread >= kPieces) return;
  reinterpret_cast<uint4*>(unit.state + layout.k)[(place.key_head * kChunk + row) * kPieces + thread] =
      *reinterpret_cast<const uint4*>(&shared.row.keys[row][thread * 8]);
}

// S k, S q, u and o of the row for one warp's 16 value dims.
template <int kKeyDim, int kWarps>
__device__ void apply(const DeltaFusedParams& p, const DeltaUnit& unit, const Place& place, float (&u)[2][4],
                      FusedShared<kKeyDim, kWarps>& shared) {
  constexpr int kSteps = kKeyDim / 16;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32, g = lane / 4,
            t = lane % 4, row = unit.start, value_dim = p.front.layout.value_dim;
  const auto* gate = reinterpret_cast<const float*>(shared.aux + DeltaAux::kGates);
  const bf16* const column = g == 0 ? shared.row.keys[row] : shared.row.queries[row];
  float s[2 * kSteps][4], sum[4] = {}, sum_low[4] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float4*>(s[2 * step + half]) = shared.state[warp][2 * step + half][lane];
    std::uint32_t high[4], low[4], b[2];
    split_operand(s[2 * step], s[2 * step + 1], high, low);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      b[half] =
          g < 2 ? *reinterpret_cast<const std::uint32_t*>(column + step * 16 + half * 8 + 2 * t) : std::uint32_t{0};
    mma_bf16(sum, high, b[0], b[1]);
    mma_bf16(sum_low, low, b[0], b[1]);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) sum[i] += sum_low[i];
  const auto value = *reinterpret_cast<const std::uint32_t*>(shared.values + warp * 16 + 2 * g);
  const float beta = gate[DeltaAux::kBeta + row], decayed = gate[DeltaAux::kBetaDecay + row];
  float own[2] = {__fmaf_rn(-decayed, sum[0], beta * low_half(value)),
                  __fmaf_rn(-decayed, sum[2], beta * high_half(value))};
#pragma unroll
  for (float& one : own) one = __shfl_sync(0xFFFFFFFFu, one, lane & ~3);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i / 2 * 8 + 2 * t + i % 2 != row) continue;
    u[i / 2][i % 2] = own[0];
    u[i / 2][2 + i % 2] = own[1];
  }
  std::uint32_t high[4], low[4];
  split_operand(u[0], u[1], high, low);
  uint4 mix{};  // the row of M as column 0
  if (g == 0) mix = reinterpret_cast<const uint4*>(shared.aux + DeltaAux::kM)[row / 8 * 32 + row % 8 * 4 + t];
  float o[4] = {};
  multiply_split(o, high, low, mix);
  const int dim = place.first_dim % value_dim + warp * 16 + 2 * g;
  if (t == 0) {
    const float decay = gate[DeltaAux::kDecay + row];
    *reinterpret_cast<float2*>(p.out + (unit.row + row) * p.out_stride + place.head * value_dim + dim) = {
        __fmaf_rn(decay, sum[1], o[0]), __fmaf_rn(decay, sum[3], o[2])};
    if (unit.end < kChunk)
      *reinterpret_cast<float2*>(unit.state + p.front.layout.u +
                                 static_cast<std::ptrdiff_t>(place.head * kChunk + row) * value_dim +
                                 dim) = {own[0], own[1]};
  }
  if (unit.end < kChunk) return;
  const auto keys = [&](int at, int piece) { return shared_address(&shared.row.keys[at][piece * 8]); };
  advance<kKeyDim>(s, reinterpret_cast<const uint4*>(shared.aux + DeltaAux::kT), gate, keys, high, low);
  store_state<kKeyDim>(s, unit.state, place.first_dim / 16 + warp);
}

template <int kKeyDim, int kWarps>
__global__ void __launch_bounds__(kThreads, 4) delta_fused(const __grid_constant__ DeltaFusedParams p) {
  extern __shared__ __align__(128) char memory[];
  auto& shared = *reinterpret_cast<FusedShared<kKeyDim, kWarps>*>(memory);
  const DeltaLayout& layout = p.front.layout;
  begin_next();
  const Place place = place_of<kWarps>(layout);
  const DeltaUnit unit = p.front.units[blockIdx.z];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32, row = unit.start;
  Quad quad = quad_of<kKeyDim>(layout, place.key_head, kWarps * 4, thread);
  if (quad.active && quad.value >= 0) quad.channel = 2 * layout.key_width + place.first_dim + 4 * quad.value;
  float4 weight[kDeltaTaps];
  load_weights(p.front, quad.channel, weight);
  const float4* const from = state_of<kKeyDim>(unit, place.first_dim / 16 + min(warp, kWarps - 1));
  fetch_state<kKeyDim, kWarps>(layout, unit, place, quad.channel, from);
  wait_for_earlier();
  earlier_keys<kKeyDim>(layout, unit.state, row, place.key_head, shared.row);
  close_copies();
  float u[2][4];
  if (warp < kWarps) {
#pragma unroll
    for (int i = 0; i < kKeyDim / 8; ++i) copy_16(shared_address(&shared.state[warp][i][lane]), from + i * 32 + lane);
    load_earlier_u(u,
                   unit.state + layout.u + static_cast<std::ptrdiff_t>(place.head) * kChunk * layout.value_dim +
                       place.first_dim % layout.value_dim + warp * 16 + lane / 4 * 2,
                   layout.value_dim, row);
  }
  close_copies();
  convolve_row<kKeyDim, kWarps>(p.front, unit, quad, weight, shared);
  if (warp == kThreads / 32 - 1 && lane < kChunk)
    cumulate(gate_of(p.front, unit, row, lane, place.head), lane, kChunk, row, shared.row);
  wait_for_older_copies<1>();
  __syncthreads();
  dots<kKeyDim>(shared.row);
  __syncthreads();
  if (warp == 0)
    prepare_head(row, unit.end, 0, 0, shared.aux, shared.row);
  else
    keep_row<kKeyDim, kWarps>(p.front, unit, place, shared);
  wait_for_copies();
  __syncthreads();
  if (warp < kWarps) apply<kKeyDim, kWarps>(p, unit, place, u, shared);
}

template <int kKeyDim, int kWarps>
void launch(Recorder& recorder, const DeltaFusedParams& params, int pieces) {
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(params.front.layout.value_dim / (16 * kWarps)),
                    static_cast<unsigned>(params.front.layout.value_heads), static_cast<unsigned>(pieces));
  shape.block = dim3(kThreads);
  shape.shared = sizeof(FusedShared<kKeyDim, kWarps>);
  shape.early = true;
  recorder.launch("delta, one row, fused", delta_fused<kKeyDim, kWarps>, shape, params);
}

template <int kKeyDim>
void launch_of_keys(Recorder& recorder, const DeltaFusedParams& params, int pieces) {
  if (params.front.layout.value_dim % 64 == 0)
    launch<kKeyDim, 4>(recorder, params, pieces);
  else
    launch<kKeyDim, 2>(recorder, params, pieces);
}

}  // namespace

void launch_delta_fused(Recorder& recorder, const DeltaFusedParams& params, int pieces) {
  if (params.front.layout.key_dim == 128)
    launch_of_keys<128>(recorder, params, pieces);
  else if (params.front.layout.key_dim == 64)
    launch_of_keys<64>(recorder, params, pieces);
  else
    launch_of_keys<32>(recorder, params, pieces);
}

}  // namespace steadfast::cuda
