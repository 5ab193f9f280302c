// Folds the spans of short pieces: one block a row, head and 64 dims, one thread a dim; spans in ascending order, each
// joined to the total as device/attention_rows.h says. All threads hold the same references and sums.
#include "backend/cuda/attention_kernels.h"
#include "backend/cuda/device/attention_items.h"
#include "backend/cuda/device/attention_mma.h"
#include "backend/cuda/device/attention_rows.h"
#include "backend/cuda/device/wait.h"

namespace steadfast::cuda {
namespace {

constexpr int kThreads = 128, kDims = 64;  // of a block
constexpr int kAhead = 64;                 // spans that are fetched together

// span: reference and sum.
__device__ __forceinline__ void join(const float4& span, float value, bool first, float& reference, float& sum,
                                     float& total) {
  if (first) {
    reference = span.x;
    sum = span.y;
    total = value;
    return;
  }
  float down;
  const float factor = span_factor(span.x, reference, down);
  if (down != 1.0f) {
    total = multiply_flush(total, down);
    sum = multiply_flush(sum, down);
  }
  total = add_flush(total, multiply_flush(value, factor));
  sum = add_flush(sum, multiply_flush(span.y, factor));
}

__global__ void __launch_bounds__(kThreads) fold_kernel(const __grid_constant__ AttentionTask task) {
  __shared__ __align__(16) float values[2][kAhead][kDims];
  __shared__ __align__(16) float4 states[2][kAhead];
  begin_next();
  const int row = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y),
            first_dim = static_cast<int>(blockIdx.z) * kDims;
  const int thread = static_cast<int>(threadIdx.x), dims = min(kDims, task.dim - first_dim);
  const AttentionEntry* entries = task.work.entries;
  const AttentionEntry& entry = entries[find_last(task.work.count, row, [&](int i) { return entries[i].first_row; })];
  const int within = row - entry.first_row, pairs = entry.kv.rows * task.group;
  const int count = span_of_tile((entry.kv.first_position + within) / kTile) + 1;
  const std::ptrdiff_t pair =
      entry.partial + static_cast<std::ptrdiff_t>(head / task.group) * pairs + within * task.group + head % task.group;
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(task.kv_heads) * pairs * (task.dim + 4);
  const float* at = task.partials + pair * (task.dim + 4);
  const auto fetch = [&](int first) {
    const int half = first / kAhead % 2, pieces = dims / 4 + 1;  // of a span: values, then its reference and sum
    for (int x = thread; x < min(kAhead, count - first) * pieces; x += kThreads) {
      const int span = x / pieces, c = x % pieces;
      const float* from = at + (first + span) * stride;
      if (c < pieces - 1) {
        copy_16(shared_address(&values[half][span][4 * c]), from + first_dim + 4 * c);
      } else {
        copy_16(shared_address(&states[half][span]), from + task.dim);
      }
    }
    close_copies();
  };
  float total = 0.0f, sum = 0.0f, reference = 0.0f;
  wait_for_earlier();  // so far only the host's data was read
  fetch(0);
  for (int first = 0; first < count; first += kAhead) {
    if (first + kAhead < count) {
      fetch(first + kAhead);
      wait_for_older_copies<1>();
    } else {
      wait_for_older_copies<0>();
    }
    __syncthreads();
    const int half = first / kAhead % 2;
    if (thread < dims) {
#pragma unroll 8
      for (int i = 0; i < min(kAhead, count - first); ++i)
        join(states[half][i], values[half][i][thread], first + i == 0, reference, sum, total);
    }
    __syncthreads();
  }
  const std::ptrdiff_t out_row = entry.kv.first_row + within;
  if (thread < dims)
    task.out[out_row * task.out_stride + head * task.dim + first_dim + thread] = finish(total, __frcp_rn(sum));
}

}  // namespace

void launch_fold(Recorder& recorder, const AttentionTask& task) {
  const dim3 grid(static_cast<unsigned>(task.work.rows), static_cast<unsigned>(task.group * task.kv_heads),
                  static_cast<unsigned>((task.dim + kDims - 1) / kDims));
  recorder.launch("attention, fold of spans", fold_kernel, {grid, kThreads, 0, 1, true}, task);
}

}  // namespace steadfast::cuda
