// What top-k and top-p keep of a row, as a least key: a search over the keys' 32 bits, 11, 11 and 10 at a time. Each
// step sums the row's counts (from the top) or masses (from the bottom) into bins and moves into the bin where the
// running sum passes its target. Sums are integers: no order enters.
#include <cmath>

#include "backend/cuda/device/draw_order.h"
#include "backend/cuda/device/exact.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/draw_kernels.h"

namespace steadfast::cuda {
namespace {

constexpr int kThreads = 256, kStepThreads = 1024;
constexpr int kHalfMass = 19;  // a mass is summed in two halves of 19 bits, which a chunk cannot overflow

__device__ inline int shift_of(int level) { return level == 0 ? 21 : level == 1 ? 10 : 0; }
__device__ inline std::uint32_t bin_of(std::uint32_t key, int level) {
  return (key >> shift_of(level)) & (level == 2 ? 1023u : 2047u);
}
// Whether the key's bits above this level's are the prefix.
__device__ inline bool below_prefix(std::uint32_t key, std::uint32_t prefix, int level) {
  return level == 0 || key >> shift_of(level - 1) == prefix >> shift_of(level - 1);
}

template <DrawSum kSum>
__device__ inline bool wanted(const DrawRow& row) {
  return row.temperature != 0 && (kSum == DrawSum::kCount ? row.top_k > 0 : row.drop > 0);
}

__global__ void __launch_bounds__(kStepThreads) limit_kernel(DrawParams p) {
  __shared__ float peaks[kStepThreads / 32];
  begin_next();
  wait_for_earlier();
  float peak = -INFINITY;
  for (int c = static_cast<int>(threadIdx.x); c < p.chunks; c += kStepThreads)
    peak = fmaxf(peak, p.bests[blockIdx.x * p.chunks + c].score);
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1)
    peak = fmaxf(peak, __shfl_xor_sync(0xFFFFFFFFu, peak, distance));
  if (threadIdx.x % 32 == 0) peaks[threadIdx.x / 32] = peak;
  for (int i = static_cast<int>(threadIdx.x); i < kDrawBins; i += kStepThreads) p.bins[blockIdx.x * kDrawBins + i] = 0;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kStepThreads / 32; ++warp) peak = fmaxf(peak, peaks[warp]);
  p.limits[blockIdx.x] = {peak, 0, 0x7FFFFFFF};
  p.searches[blockIdx.x] = {};
}

template <DrawSum kSum>
__global__ void __launch_bounds__(kThreads) bins_kernel(DrawParams p, int level) {
  constexpr int kHalves = kSum == DrawSum::kCount ? 1 : 2;
  __shared__ unsigned sums[kHalves][kDrawBins];
  begin_next();
  for (int i = static_cast<int>(threadIdx.x); i < kDrawBins * kHalves; i += kThreads)
    sums[i / kDrawBins][i % kDrawBins] = 0;
  wait_for_earlier();
  const DrawRow row = p.rows[blockIdx.y];
  if (!wanted<kSum>(row)) return;
  const DrawSearch search = p.searches[blockIdx.y];
  const float peak = p.limits[blockIdx.y].peak;
  __syncthreads();
  const int first = static_cast<int>(blockIdx.x) * kDrawChunk, last = min(first + kDrawChunk, row.vocab);
  for (int i = first + static_cast<int>(threadIdx.x); i < last; i += kThreads) {
    const float x = p.logits[blockIdx.y * p.stride + i];
    const std::uint32_t key = order_of(x);
    if (key < search.floor || !below_prefix(key, search.prefix, level)) continue;
    const std::uint32_t bin = bin_of(key, level);
    if constexpr (kSum == DrawSum::kCount) {
      atomicAdd(&sums[0][bin], 1u);
    } else {
      const unsigned long long mass = mass_of(x, peak);
      atomicAdd(&sums[0][bin], static_cast<unsigned>(mass & ((1u << kHalfMass) - 1)));
      atomicAdd(&sums[kHalves - 1][bin], static_cast<unsigned>(mass >> kHalfMass));
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kDrawBins; i += kThreads) {
    unsigned long long sum = sums[0][i];
    if constexpr (kSum == DrawSum::kMass) sum += static_cast<unsigned long long>(sums[kHalves - 1][i]) << kHalfMass;
    if (sum != 0) atomicAdd(&p.bins[blockIdx.y * kDrawBins + i], sum);
  }
}

// The id of the `keep`-th of the row's values whose key is `key`, ids ascending; all threads of the block.
__device__ int tie_id(const DrawParams& p, int vocab, std::uint32_t key, unsigned long long keep) {
  __shared__ int found;
  __shared__ unsigned warps[kStepThreads / 32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) found = 0x7FFFFFFF;
  unsigned long long seen = 0;
  for (int first = 0; first < vocab && seen < keep; first += kStepThreads) {
    const int i = first + static_cast<int>(threadIdx.x);
    const bool tie = i < vocab && order_of(p.logits[blockIdx.x * p.stride + i]) == key;
    const unsigned ballot = __ballot_sync(0xFFFFFFFFu, tie);
    if (lane == 0) warps[warp] = static_cast<unsigned>(__popc(ballot));
    __syncthreads();
    unsigned long long rank = seen + static_cast<unsigned>(__popc(ballot & ((1u << lane) - 1))) + 1;
    for (unsigned w = 0; w < kStepThreads / 32; ++w) {
      if (w < warp) rank += warps[w];
      seen += warps[w];
    }
    if (tie && rank == keep) found = i;
    __syncthreads();
  }
  return found;
}

// Moves the search into a bin. Thread t owns bins 2t and 2t + 1, counted from the end where the sum begins.
template <DrawSum kSum>
__global__ void __launch_bounds__(kStepThreads) step_kernel(DrawParams p, int level) {
  __shared__ unsigned long long sums[kStepThreads];
  __shared__ DrawSearch next;
  __shared__ unsigned long long passed;  // the bin's own sum
  begin_next();
  wait_for_earlier();
  const DrawRow row = p.rows[blockIdx.x];
  if (!wanted<kSum>(row)) return;
  const int t = static_cast<int>(threadIdx.x);
  unsigned long long* bins = p.bins + static_cast<std::ptrdiff_t>(blockIdx.x) * kDrawBins;
  const auto bin_at = [&](int i) { return kSum == DrawSum::kCount ? kDrawBins - 1 - i : i; };
  const unsigned long long a = bins[bin_at(2 * t)], b = bins[bin_at(2 * t + 1)];
  bins[bin_at(2 * t)] = bins[bin_at(2 * t + 1)] = 0;
  sums[t] = a + b;
  if (t == 0) next = p.searches[blockIdx.x];
  __syncthreads();
  for (int distance = 1; distance < kStepThreads; distance *= 2) {
    const unsigned long long earlier = t >= distance ? sums[t - distance] : 0;
    __syncthreads();
    sums[t] += earlier;
    __syncthreads();
  }
  const unsigned long long total = sums[kStepThreads - 1];
  if (t == 0 && level == 0) {
    next.before = 0;
    next.prefix = 0;
    next.target = kSum == DrawSum::kCount ? static_cast<unsigned long long>(row.top_k - 1)
                                          : static_cast<unsigned long long>(row.drop * static_cast<double>(total));
    next.missed = next.target >= total ? 1 : 0;
  }
  __syncthreads();
  const unsigned long long base = next.before, target = next.target;
  const unsigned long long at_a = base + sums[t] - a - b, at_b = at_a + a;  // before either bin
  __syncthreads();
  const bool in_a = at_a <= target && at_a + a > target, in_b = at_b <= target && at_b + b > target;
  if (in_a || in_b) {
    const auto bin = static_cast<std::uint32_t>(bin_at(2 * t + (in_b ? 1 : 0)));
    next.prefix |= bin << shift_of(level);
    next.before = in_b ? at_b : at_a;
    passed = in_b ? b : a;
  }
  __syncthreads();
  DrawLimit limit = p.limits[blockIdx.x];
  if (level == 2) {
    if (kSum == DrawSum::kCount) {
      limit.key = next.missed != 0 ? 0 : next.prefix;  // fewer values than k: all stay
      if (t == 0) next.floor = limit.key;
    } else {
      // Values of equal key drop from the highest id down, as many as still fit the target; one always stays.
      limit.key = next.missed != 0 ? order_of(limit.peak) : next.prefix;
      unsigned long long keep = 1;
      bool some_drop = next.missed != 0;
      if (next.missed == 0) {
        const unsigned long long each = max(mass_of(value_of(limit.key), limit.peak), 1ull), ties = passed / each;
        const unsigned long long drop = (next.target - next.before) / each;
        keep = ties - drop;
        some_drop = drop > 0;
      }
      if (some_drop) limit.id = tie_id(p, row.vocab, limit.key, keep);
    }
  }
  __syncthreads();
  if (t != 0) return;
  p.searches[blockIdx.x] = next;
  p.limits[blockIdx.x] = limit;
}

// The log-softmax of raw logits: the drawn id's, and the largest, one pass each.
__global__ void __launch_bounds__(kStepThreads) logprob_kernel(DrawParams p) {
  __shared__ Best shared[kStepThreads / 32];
  __shared__ unsigned long long masses[kStepThreads / 32];
  begin_next();
  wait_for_earlier();
  const DrawRow row = p.rows[blockIdx.x];
  if (row.top_logprobs < 0) return;
  const float* raw = p.raw + blockIdx.x * p.width;
  DrawResult& result = p.results[blockIdx.x];
  const auto better = [](const Best& a, const Best& b) {
    return a.score > b.score || (a.score == b.score && a.id < b.id);
  };
  // The best value behind `last` in the order of ranks, to every thread.
  const auto next_best = [&](Best last) {
    Best best{-INFINITY, 0x7FFFFFFF};
    for (int i = static_cast<int>(threadIdx.x); i < row.vocab; i += kStepThreads) {
      const Best own{raw[i], i};
      if (better(last, own) && better(own, best)) best = own;
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) {
      const Best other{__shfl_xor_sync(0xFFFFFFFFu, best.score, distance),
                       __shfl_xor_sync(0xFFFFFFFFu, best.id, distance)};
      if (better(other, best)) best = other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = best;
    __syncthreads();
    best = shared[0];
    for (int warp = 1; warp < kStepThreads / 32; ++warp)
      if (better(shared[warp], best)) best = shared[warp];
    return best;
  };
  Best best = next_best({INFINITY, -1});
  const float peak = best.score;
  unsigned long long mass = 0;
  for (int i = static_cast<int>(threadIdx.x); i < row.vocab; i += kStepThreads) mass += mass_of(raw[i], peak);
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) mass += __shfl_xor_sync(0xFFFFFFFFu, mass, distance);
  if (threadIdx.x % 32 == 0) masses[threadIdx.x / 32] = mass;
  __syncthreads();
  mass = 0;
  for (const unsigned long long part : masses) mass += part;
  const double log_total = static_cast<double>(peak) + exact_log(static_cast<double>(mass) * 0x1p-38);
  const auto bounded = [log_total](float logit) {
    return static_cast<float>(fmax(static_cast<double>(logit) - log_total, -9999.0));
  };
  const int top = min(row.top_logprobs, row.vocab);
  if (threadIdx.x == 0) {
    result.logprob = bounded(raw[result.id]);
    result.top_count = top;
  }
  for (int i = 0; i < top; ++i) {
    if (threadIdx.x == 0) {
      result.top_ids[i] = best.id;
      result.top_logprobs[i] = bounded(best.score);
    }
    if (i + 1 < top) best = next_best(best);
  }
}

LaunchShape a_row_each(int rows) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(rows);
  shape.block.x = kStepThreads;
  shape.early = true;
  return shape;
}

}  // namespace

void launch_limit(Recorder& recorder, const DrawParams& params, int rows) {
  recorder.launch("draw: peak", limit_kernel, a_row_each(rows), params);
}

void launch_search(Recorder& recorder, const DrawParams& params, int rows, DrawSum sum, int level) {
  LaunchShape bins;
  bins.grid = dim3(static_cast<unsigned>(params.chunks), static_cast<unsigned>(rows));
  bins.block.x = kThreads;
  bins.early = true;
  const bool count = sum == DrawSum::kCount;
  recorder.launch(count ? "draw: top-k sums" : "draw: top-p sums",
                  count ? bins_kernel<DrawSum::kCount> : bins_kernel<DrawSum::kMass>, bins, params, level);
  recorder.launch(count ? "draw: top-k step" : "draw: top-p step",
                  count ? step_kernel<DrawSum::kCount> : step_kernel<DrawSum::kMass>, a_row_each(rows), params, level);
}

void launch_logprobs(Recorder& recorder, const DrawParams& params, int rows) {
  recorder.launch("draw: log-probabilities", logprob_kernel, a_row_each(rows), params);
}

}  // namespace steadfast::cuda
