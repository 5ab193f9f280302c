// What the rows of pieces of more than one row need before the sequential part (device/delta_prepare.h), for every unit
// and key head at once: one block each.
#include <algorithm>

#include "backend/cuda/delta_kernels.h"
#include "backend/cuda/device/delta_prepare.h"
#include "backend/cuda/device/wait.h"

namespace steadfast::cuda {
namespace {

constexpr int kWorkers = 4;  // warps that prepare value heads

// For the rule, when the unit ends the chunk: by then later rows may have replaced them in the state.
template <int kKeyDim, class P>
__device__ void copy_earlier_keys(const DeltaFrontParams& p, const DeltaUnit& unit, int begin, int key_head,
                                  const P& shared) {
  constexpr int kPieces = kKeyDim / 8;
  auto* to = reinterpret_cast<uint4*>(p.earlier_keys) +
             static_cast<std::ptrdiff_t>(unit.piece * p.layout.key_heads + key_head) * kChunk * kPieces;
  for (int i = static_cast<int>(threadIdx.x); i < begin * kPieces; i += static_cast<int>(blockDim.x))
    to[i] = *reinterpret_cast<const uint4*>(&shared.keys[i / kPieces][i % kPieces * 8]);
}

template <int kKeyDim>
__global__ void __launch_bounds__(320) delta_front(const __grid_constant__ DeltaFrontParams p) {
  __shared__ Prepared<kKeyDim, kWorkers, kMostRatio> shared;
  const DeltaLayout& layout = p.layout;
  const DeltaUnit unit = p.units[blockIdx.y];
  const int key_head = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x),
            threads = static_cast<int>(blockDim.x), begin = max(unit.start, 0), quads = layout.value_dim / 4;
  Quad quad = quad_of<kKeyDim>(layout, key_head, layout.ratio * quads, thread);
  if (quad.active && quad.value >= 0)
    quad.channel = 2 * layout.key_width + layout.value_head(key_head, quad.value / quads) * layout.value_dim +
                   4 * (quad.value % quads);
  Track track;
  load_weights(p, quad.channel, track.weight);
  wait_for_earlier();
  begin_next();  // not before: the next launch reads S at once, which a launch before this one may have written
  if (unit.end <= 0) return;
  const Channels channels{p.x + unit.row * p.x_stride + quad.channel,
                          unit.conv + quad.channel,
                          p.x_stride,
                          layout.conv_width,
                          unit.position,
                          unit.start};
  earlier_keys<kKeyDim>(layout, unit.state, begin, key_head, shared);
#pragma unroll
  for (int i = 0; i < 3; ++i) track.history[i] = channels.at(begin - 3 + i);
  // The warps that hold queries and keys have most to do: others see to the gates.
  const int gates = layout.ratio * kChunk, busy = max(kKeyDim / 2, 32);
  for (int i = (thread + threads - busy) % threads; i < gates; i += threads)
    cumulate(gate_of(p, unit, begin, i % kChunk, layout.value_head(key_head, i / kChunk)), i, gates, begin, shared);
  track.x = channels.x + begin * p.x_stride;
  track.x_stride = p.x_stride;
  track.to = p.rows + (unit.row + begin) * p.rows_stride + quad.channel;
  track.to_stride = p.rows_stride;
  track.active = quad.active;
  track.is_head = quad.is_query || quad.is_key;
  track.scale = quad.is_query ? p.query_scale : 1.0f;
  track.shared = (quad.is_query ? shared.queries : shared.keys)[begin] + 4 * (thread % (kKeyDim / 4));
  if (thread / 32 * 32 < kKeyDim / 2)
    convolve_rows<kKeyDim, true>(track, unit.end - begin);
  else
    convolve_rows<kKeyDim, false>(track, unit.end - begin);
  wait_for_copies();
  __syncthreads();
  dots<kKeyDim>(shared);
  if (begin > 0 && unit.end == kChunk) copy_earlier_keys<kKeyDim>(p, unit, begin, key_head, shared);
  __syncthreads();
  const int warp = thread / 32;
  if (warp >= kWorkers) return;
  for (int ratio = warp; ratio < layout.ratio; ratio += kWorkers) {
    const auto at = static_cast<std::ptrdiff_t>(blockIdx.y) * layout.value_heads + layout.value_head(key_head, ratio);
    prepare_head(begin, unit.end, ratio, warp, p.aux + at * DeltaAux::kBytes, shared);
    __syncwarp();
  }
}

}  // namespace

void launch_delta_front(Recorder& recorder, const DeltaFrontParams& params, int units) {
  const DeltaLayout& layout = params.layout;
  const int quads = layout.key_dim / 2 + layout.ratio * layout.value_dim / 4;
  const auto threads = static_cast<unsigned>(std::max((quads + 31) / 32 * 32, kWorkers * 32));
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(layout.key_heads), static_cast<unsigned>(units));
  shape.block = dim3(threads);
  shape.early = true;
  if (layout.key_dim == 128)
    recorder.launch("delta front, key dim 128", delta_front<128>, shape, params);
  else if (layout.key_dim == 64)
    recorder.launch("delta front, key dim 64", delta_front<64>, shape, params);
  else
    recorder.launch("delta front, key dim 32", delta_front<32>, shape, params);
}

}  // namespace steadfast::cuda
