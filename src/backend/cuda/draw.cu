// Kernels of the draw over all rows at once: bias and penalties, the temperature, noise and the maximum. The filters
// are draw_limit.cu's.
#include <cmath>

#include "backend/cuda/device/draw_order.h"
#include "backend/cuda/device/math.h"
#include "backend/cuda/device/philox.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/draw_kernels.h"

namespace steadfast::cuda {
namespace {

constexpr int kThreads = 256;
constexpr float kMostBehind = 28.2f;  // noise lies between -6.62 and 21.5: no id this far behind the peak can win

__device__ inline bool better(const Best& a, const Best& b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id);
}

// The best of the block's threads, in thread 0.
__device__ Best block_best(Best best) {
  __shared__ Best shared[kThreads / 32];
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) {
    const Best other{__shfl_xor_sync(0xFFFFFFFFu, best.score, distance),
                     __shfl_xor_sync(0xFFFFFFFFu, best.id, distance)};
    if (better(other, best)) best = other;
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int warp = 1; warp < kThreads / 32; ++warp)
      if (better(shared[warp], best)) best = shared[warp];
  return best;
}

__global__ void __launch_bounds__(kThreads) keep_raw_kernel(DrawParams p) {
  begin_next();
  wait_for_earlier();
  const DrawRow row = p.rows[blockIdx.y];
  if (row.top_logprobs < 0) return;
  const int first = static_cast<int>(blockIdx.x) * kDrawChunk, last = min(first + kDrawChunk, row.vocab);
  for (int i = first + static_cast<int>(threadIdx.x); i < last; i += kThreads)
    p.raw[blockIdx.y * p.width + i] = p.logits[blockIdx.y * p.stride + i];
}

__global__ void __launch_bounds__(kThreads) edit_kernel(DrawParams p) {
  begin_next();
  wait_for_earlier();
  const DrawRow row = p.rows[blockIdx.x];
  for (int e = static_cast<int>(threadIdx.x); e < row.edits; e += kThreads) {
    const LogitEdit edit = p.edits[row.first_edit + e];
    if (edit.id < 0 || edit.id >= row.vocab) continue;
    float* at = p.logits + blockIdx.x * p.stride + edit.id;
    float logit = *at + edit.bias;
    if (edit.seen != 0 && row.repetition != 1.0f)
      logit = logit > 0 ? __fdiv_rn(logit, row.repetition) : logit * row.repetition;
    if (edit.in_reply > 0) {
      logit -= row.frequency * static_cast<float>(edit.in_reply);
      logit -= row.presence;
    }
    *at = logit;
  }
}

__global__ void __launch_bounds__(kThreads) scale_kernel(DrawParams p) {
  begin_next();
  wait_for_earlier();
  const DrawRow row = p.rows[blockIdx.y];
  if (row.temperature == 0) return;
  const int first = static_cast<int>(blockIdx.x) * kDrawChunk, last = min(first + kDrawChunk, row.vocab);
  Best best{-INFINITY, 0x7FFFFFFF};
  for (int i = first + static_cast<int>(threadIdx.x); i < last; i += kThreads) {
    float& logit = p.logits[blockIdx.y * p.stride + i];
    logit = __fdiv_rn(logit, row.temperature);
    const Best own{logit, i};
    if (better(own, best)) best = own;
  }
  best = block_best(best);
  if (threadIdx.x == 0) p.bests[blockIdx.y * p.chunks + blockIdx.x] = best;
}

__global__ void __launch_bounds__(kThreads) score_kernel(DrawParams p) {
  begin_next();
  wait_for_earlier();
  const DrawRow row = p.rows[blockIdx.y];
  const int first = static_cast<int>(blockIdx.x) * kDrawChunk, last = min(first + kDrawChunk, row.vocab);
  const bool sampled = row.temperature != 0;
  const DrawLimit limit = sampled ? p.limits[blockIdx.y] : DrawLimit{};
  const double least = static_cast<double>(limit.peak) + row.min_p_log;
  Best best{-INFINITY, 0x7FFFFFFF};
  for (int i = first + static_cast<int>(threadIdx.x); i < last; i += kThreads) {
    Best own{p.logits[blockIdx.y * p.stride + i], i};
    if (sampled) {
      if (!(own.score >= limit.peak - kMostBehind) || static_cast<double>(own.score) < least) continue;
      const std::uint32_t order = order_of(own.score);
      if (order < limit.key || (order == limit.key && i > limit.id)) continue;
      own.score += gumbel(row.key, i);
    }
    if (better(own, best)) best = own;
  }
  best = block_best(best);
  if (threadIdx.x == 0) p.bests[blockIdx.y * p.chunks + blockIdx.x] = best;
}

__global__ void __launch_bounds__(kThreads) pick_kernel(DrawParams p) {
  begin_next();
  wait_for_earlier();
  Best best{-INFINITY, 0x7FFFFFFF};
  for (int c = static_cast<int>(threadIdx.x); c < p.chunks; c += kThreads) {
    const Best own = p.bests[blockIdx.x * p.chunks + c];
    if (better(own, best)) best = own;
  }
  best = block_best(best);
  // Nothing above -infinity: logits that are no numbers. The lowest id, as ties go.
  if (threadIdx.x == 0) p.results[blockIdx.x].id = best.id == 0x7FFFFFFF ? 0 : best.id;
}

LaunchShape over(unsigned x, unsigned y) {
  LaunchShape shape;
  shape.grid = dim3(x, y);
  shape.block.x = kThreads;
  shape.early = true;
  return shape;
}

LaunchShape chunked(const DrawParams& params, int rows) {
  return over(static_cast<unsigned>(params.chunks), static_cast<unsigned>(rows));
}

}  // namespace

void launch_keep_raw(Recorder& recorder, const DrawParams& params, int rows) {
  recorder.launch("draw: keep raw logits", keep_raw_kernel, chunked(params, rows), params);
}
void launch_edit(Recorder& recorder, const DrawParams& params, int rows) {
  recorder.launch("draw: penalties", edit_kernel, over(static_cast<unsigned>(rows), 1), params);
}
void launch_scale(Recorder& recorder, const DrawParams& params, int rows) {
  recorder.launch("draw: temperature", scale_kernel, chunked(params, rows), params);
}
void launch_score(Recorder& recorder, const DrawParams& params, int rows) {
  recorder.launch("draw: noise", score_kernel, chunked(params, rows), params);
}
void launch_pick(Recorder& recorder, const DrawParams& params, int rows) {
  recorder.launch("draw: maximum", pick_kernel, over(static_cast<unsigned>(rows), 1), params);
}

}  // namespace steadfast::cuda
