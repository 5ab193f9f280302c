// The delta rule for many pieces of one row: the arithmetic of delta_rule.cu with the row's key and query as the two
// first columns of one product. S is read, before the launch ahead has ended, and written at a chunk's end only.
#include "backend/cuda/delta_kernels.h"
#include "backend/cuda/device/delta_parts.h"
#include "backend/cuda/device/wait.h"

namespace steadfast::cuda {
namespace {

using bf16 = __nv_bfloat16;

// The chunk's keys: fifteen from earlier rounds, as the preparation copied them, and the row's own.
template <int kKeyDim>
__device__ void gather_keys(const DeltaRuleParams& p, int piece_index, const Place& place, const bf16* own,
                            uint4* keys) {
  constexpr int kPieces = kKeyDim / 8;
  const auto* earlier =
      reinterpret_cast<const uint4*>(p.earlier_keys) +
      static_cast<std::ptrdiff_t>(piece_index * p.layout.key_heads + place.key_head) * kChunk * kPieces;
  for (int i = static_cast<int>(threadIdx.x); i < kChunk * kPieces; i += static_cast<int>(blockDim.x)) {
    const int row = i / kPieces, piece = i % kPieces;
    keys[swizzled<kPieces>(row, piece)] =
        row < kChunk - 1 ? earlier[i] : *reinterpret_cast<const uint4*>(own + piece * 8);
  }
}

template <int kKeyDim, int kWarps>
__global__ void __launch_bounds__(kWarps * 32, 512 / (kWarps * 32))
    delta_rule_one(const __grid_constant__ DeltaRuleParams p) {
  constexpr int kSteps = kKeyDim / 16;
  __shared__ alignas(128) uint4 keys[kChunk * kKeyDim / 8];
  begin_next();
  const Place place = place_of<kWarps>(p.layout);
  const DeltaUnit* const units = p.units + blockIdx.z;
  float* const state = units->state;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int g = lane / 4, t = lane % 4, row = units->start, value_dim = p.layout.value_dim;
  const int tile = place.first_dim / 16 + warp, dim = place.first_dim % value_dim + warp * 16 + 2 * g;
  float s[2 * kSteps][4], u[2][4];
  load_state<kKeyDim>(s, state, tile);
  float* const kept_u = state + p.layout.u + static_cast<std::ptrdiff_t>(place.head) * kChunk * value_dim + dim;
  load_earlier_u(u, kept_u, value_dim, row);
  wait_for_earlier();
  const std::ptrdiff_t at = units->row + row;  // row of the round

  const bf16* const query = p.rows + at * p.rows_stride + place.key_head * kKeyDim;
  const bf16* const key = query + p.layout.key_width;
  const std::byte* const aux =
      p.aux + (static_cast<std::ptrdiff_t>(units->index) * p.layout.value_heads + place.head) * DeltaAux::kBytes;
  const auto* const gate = reinterpret_cast<const float*>(aux + DeltaAux::kGates);
  std::uint32_t b[kSteps][2];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const auto* from = reinterpret_cast<const std::uint32_t*>((g == 0 ? key : query) + step * 16 + 2 * t);
    b[step][0] = g < 2 ? from[0] : 0;
    b[step][1] = g < 2 ? from[4] : 0;
  }
  const auto value = *reinterpret_cast<const std::uint32_t*>(p.rows + at * p.rows_stride + 2 * p.layout.key_width +
                                                             place.head * value_dim + dim);
  const float beta = gate[DeltaAux::kBeta + row], decayed = gate[DeltaAux::kBetaDecay + row],
              decay = gate[DeltaAux::kDecay + row];
  uint4 mix{};  // the row of M as column 0
  if (g == 0) mix = reinterpret_cast<const uint4*>(aux + DeltaAux::kM)[row / 8 * 32 + row % 8 * 4 + t];
  keep<kKeyDim>(p, *units, place, static_cast<int>(threadIdx.x), kWarps * 32);

  float sum[4] = {}, sum_low[4] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    std::uint32_t high[4], low[4];
    split_operand(s[2 * step], s[2 * step + 1], high, low);
    mma_bf16(sum, high, b[step][0], b[step][1]);
    mma_bf16(sum_low, low, b[step][0], b[step][1]);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) sum[i] += sum_low[i];
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
  float o[4] = {};
  multiply_split(o, high, low, mix);
  if (t == 0) {
    *reinterpret_cast<float2*>(p.out + at * p.out_stride + place.head * value_dim + dim) = {
        __fmaf_rn(decay, sum[1], o[0]), __fmaf_rn(decay, sum[3], o[2])};
    if (row < kChunk - 1) *reinterpret_cast<float2*>(kept_u + row * value_dim) = {own[0], own[1]};
  }
  if (row == kChunk - 1) {
    gather_keys<kKeyDim>(p, units->piece, place, key, keys);
    __syncthreads();
    const auto at_shared = [&](int chunk_row, int piece) {
      return shared_address(&keys[swizzled<kKeyDim / 8>(chunk_row, piece)]);
    };
    advance<kKeyDim>(s, reinterpret_cast<const uint4*>(aux + DeltaAux::kT), gate, at_shared, high, low);
    store_state<kKeyDim>(s, state, tile);
  }
}

template <int kKeyDim>
void launch(Recorder& recorder, const DeltaRuleParams& params, int pieces) {
  const int warps = params.layout.value_dim % 64 == 0 ? 4 : 2;
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(params.layout.value_dim / (16 * warps)),
                    static_cast<unsigned>(params.layout.value_heads), static_cast<unsigned>(pieces));
  shape.block = dim3(static_cast<unsigned>(warps) * 32);
  shape.early = true;
  if (warps == 4)
    recorder.launch("delta rule, one row", delta_rule_one<kKeyDim, 4>, shape, params);
  else
    recorder.launch("delta rule, one row", delta_rule_one<kKeyDim, 2>, shape, params);
}

}  // namespace

void launch_delta_one(Recorder& recorder, const DeltaRuleParams& params, int pieces) {
  if (params.layout.key_dim == 128)
    launch<128>(recorder, params, pieces);
  else if (params.layout.key_dim == 64)
    launch<64>(recorder, params, pieces);
  else
    launch<32>(recorder, params, pieces);
}

}  // namespace steadfast::cuda
