// Attention by mma.sync and cp.async, for every architecture from sm_80: four warps of 16 pairs each share tiles of 64
// positions of keys and values in shared memory. The arithmetic is that of device/attention_rows.h: scores one chain of
// k16 steps over the head's dims, values one chain over a span's positions, spans folded in ascending order.
#include <array>

#include "backend/cuda/attention_kernels.h"
#include "backend/cuda/device/attention_items.h"
#include "backend/cuda/device/attention_mma.h"
#include "backend/cuda/device/attention_rows.h"
#include "backend/cuda/device/wait.h"

namespace steadfast::cuda {
namespace {

constexpr int kPairs = 64, kThreads = 128;

// kBlocks: blocks of 64 dims; kBytes: of 64 dims of keys and values, 128 (bf16) or 64 (fp8).
template <int kBlocks, int kBytes>
struct Shape {
  static constexpr int kTileBytes = kBlocks * kTile * kBytes;
  static constexpr int kQueryBytes = kBlocks * kPairs * 128;
  static constexpr int kScales = kBytes == 64 ? 2 * kTile * static_cast<int>(sizeof(float)) : 0;
  static constexpr int kShared = kQueryBytes + 2 * kTileBytes + kScales;
};

// The block's item, in shared memory: it costs no registers.
using Unit = AttentionItem;

// This thread's pairs within the piece are pair and pair + 8.
__device__ __forceinline__ int first_pair(const Unit& unit) {
  return unit.unit * kPairs + static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
}
// -1: behind the last.
__device__ __forceinline__ int position_of(const AttentionTask& task, const Unit& unit, int pair) {
  return pair < unit.pairs ? unit.kv.first_position + pair / task.group : -1;
}

template <int kBlocks>
__device__ __forceinline__ void load_queries(const AttentionTask& task, const Unit& unit, std::uint32_t to) {
  const int pieces = task.dim / 8;
#pragma unroll 1
  for (int x = static_cast<int>(threadIdx.x); x < kPairs * kBlocks * 8; x += kThreads) {
    const int r = x / (kBlocks * 8), c = x % (kBlocks * 8), pair = unit.unit * kPairs + r;
    const std::uint32_t at = to + (c / 8) * (kPairs * 128) + r * 128 + (((c % 8) ^ (r & 7)) << 4);
    if (pair < unit.pairs && c < pieces) {
      const std::ptrdiff_t row = unit.kv.first_row + pair / task.group;
      const int head = unit.head * task.group + pair % task.group;
      copy_16(at, task.queries + (row * task.group * task.kv_heads + head) * task.dim + c * 8);
    } else {
      asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(0) : "memory");
    }
  }
}

// Position r of tile `tile`; positions behind the piece's last are taken from the start of its last page.
__device__ __forceinline__ int place_of(const KvPiece& piece, int tile, int r) {
  const int part = min(piece.page_positions, kTile), last = piece.first_position + piece.rows - 1;
  const int in_part = r & (part - 1);
  return min(tile * kTile + r - in_part, last & ~(part - 1)) + in_part;
}

// Tile `tile` of keys (or values).
template <int kBlocks, int kBytes>
__device__ __forceinline__ void load_tile(const AttentionTask& task, const Unit& unit, const std::byte* from, int tile,
                                          std::uint32_t to) {
  constexpr int kPieces = kBytes / 16;
  const KvPiece& piece = unit.kv;
  const int c = static_cast<int>(threadIdx.x) % kPieces;
#pragma unroll 1
  for (int r = static_cast<int>(threadIdx.x) / kPieces; r < kTile; r += kThreads / kPieces) {
    const int position = place_of(piece, tile, r), page = position >> piece.page_shift;
    const int within = position - (page << piece.page_shift);
    const std::byte* part = from + part_offset<kBytes>(task.tables[piece.table + page], task.kv_heads, unit.head,
                                                       piece.page_positions, task.dim);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block)
      if (c * 16 < (task.dim - block * 64) * (kBytes / 64))
        copy_16(to + block * (kTile * kBytes) + r * kBytes + ((c ^ swizzle<kBytes>(r)) << 4),
                part + kv_offset<kBytes>(piece.page_positions, task.dim, within, block, c));
  }
}

// A tile's scales of 64 positions.
__device__ __forceinline__ void load_scales(const AttentionTask& task, const Unit& unit, const float* from, int tile,
                                            std::uint32_t to) {
  const KvPiece& piece = unit.kv;
  const int r = static_cast<int>(threadIdx.x) * 4;
  if (r >= kTile) return;
  const int position = place_of(piece, tile, r);
  const int page = position >> piece.page_shift, within = position - (page << piece.page_shift);
  copy_16(to + r * 4, from +
                          (static_cast<std::ptrdiff_t>(task.tables[piece.table + page]) * task.kv_heads + unit.head) *
                              piece.page_positions +
                          within);
}

template <int kBlocks, int kBytes>
__device__ __forceinline__ void scores(float (&s)[32], int steps, std::uint32_t queries, std::uint32_t keys) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  float(&c)[8][4] = reinterpret_cast<float(&)[8][4]>(s);
#pragma unroll
  for (int x = 0; x < 32; ++x) s[x] = 0.0f;
#pragma unroll 1
  for (int k = 0; k < steps; ++k) {
    std::uint32_t a[4];
    const int r = warp * 16 + lane % 16;
    load_matrices_in_order(a, queries + k / 4 * (kPairs * 128) + r * 128 + (((k % 4 * 2 + lane / 16) ^ (r & 7)) << 4));
    if constexpr (kBytes == 128) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        std::uint32_t b[4];
        const int key = j * 16 + lane / 16 * 8 + lane % 8, piece = k % 4 * 2 + lane / 8 % 2;
        load_matrices_in_order(b, keys + k / 4 * (kTile * 128) + key * 128 + ((piece ^ (key & 7)) << 4));
        multiply_add(c[2 * j], a, b[0], b[1]);
        multiply_add(c[2 * j + 1], a, b[2], b[3]);
      }
    } else {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        std::uint32_t b[4];
        const int key = j * 32 + lane;
        load_matrices_in_order(b, keys + k / 4 * (kTile * 64) + key * 64 + (((k % 4) ^ swizzle<64>(key)) << 4));
#pragma unroll
        for (int y = 0; y < 4; ++y) {
          std::uint32_t low, high;
          expand_e4m3(b[y], ExpandScale::kOne, low, high);
          multiply_add(c[4 * j + y], a, low, high);
        }
      }
    }
  }
}

template <int kBlocks, int kBytes>
__device__ __forceinline__ void add_values(float (&o)[32 * kBlocks], const std::uint32_t (&p)[16],
                                           std::uint32_t values) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float(&c)[8 * kBlocks][4] = reinterpret_cast<float(&)[8 * kBlocks][4]>(o);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::uint32_t a[4] = {p[4 * k], p[4 * k + 1], p[4 * k + 2], p[4 * k + 3]};
    const int key = k * 16 + lane % 16;
#pragma unroll
    for (int j = 0; j < 4 * kBlocks; ++j) {  // 16 dims each; behind the head's last, shared memory holds zeros
      std::uint32_t b[4];
      if constexpr (kBytes == 128) {
        const int piece = j % 4 * 2 + lane / 16;
        load_matrices_transposed_in_order(b, values + j / 4 * (kTile * 128) + key * 128 + ((piece ^ (key & 7)) << 4));
        multiply_add(c[2 * j], a, b[0], b[1]);
        multiply_add(c[2 * j + 1], a, b[2], b[3]);
      } else if (j % 2 == 0) {
        const int piece = j % 4 + lane / 16;
        load_matrices_transposed_in_order(b,
                                          values + j / 4 * (kTile * 64) + key * 64 + ((piece ^ swizzle<64>(key)) << 4));
#pragma unroll
        for (int y = 0; y < 2; ++y) {
          std::uint32_t low0, high0, low1, high1;
          expand_e4m3(b[2 * y], ExpandScale::kOne, low0, high0);
          expand_e4m3(b[2 * y + 1], ExpandScale::kOne, low1, high1);
          multiply_add(c[2 * (j + y)], a, low0, low1);
          multiply_add(c[2 * (j + y) + 1], a, high0, high1);
        }
      }
    }
  }
}

// Scales of keys times scores; scales of values times weights: powers of two, so nothing is rounded.
__device__ __forceinline__ void scale_scores(float (&s)[32], const float* scales) {
  const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float2 scale = *reinterpret_cast<const float2*>(scales + 8 * j + 2 * t);
    s[4 * j] *= scale.x;
    s[4 * j + 1] *= scale.y;
    s[4 * j + 2] *= scale.x;
    s[4 * j + 3] *= scale.y;
  }
}

// The span's values joined to the block's total in scratch.
template <int kBlocks>
__device__ __forceinline__ void fold(float4* total, float (&o)[32 * kBlocks], const FoldFactors& factors, bool first) {
#pragma unroll
  for (int x = 0; x < 8 * kBlocks; ++x) {
    float4* at = total + x * kThreads;
    write_total(at, first ? four(o, x) : joined(read_total(at), four(o, x), factors));
  }
}

template <int kBlocks>
__device__ __forceinline__ void write_rows(const AttentionTask& task, const Unit& unit, const float4* total,
                                           const RowTotals& totals) {
  const float inverse0 = __frcp_rn(totals.l0), inverse1 = __frcp_rn(totals.l1);
  const int pair0 = first_pair(unit), pair1 = pair0 + 8;
  const auto at = [&](int pair) {
    return task.out + (unit.kv.first_row + pair / task.group) * task.out_stride +
           (unit.head * task.group + pair % task.group) * task.dim + 2 * (threadIdx.x % 4);
  };
  float *to0 = at(pair0), *to1 = at(pair1);
#pragma unroll 2
  for (int x = 0; x < task.dim / 8; ++x) {
    const float4 z = read_total(total + x * kThreads);
    if (pair0 < unit.pairs) *reinterpret_cast<float2*>(to0 + 8 * x) = {finish(z.x, inverse0), finish(z.y, inverse0)};
    if (pair1 < unit.pairs) *reinterpret_cast<float2*>(to1 + 8 * x) = {finish(z.z, inverse1), finish(z.w, inverse1)};
  }
}

// A span of a short piece goes to scratch: values, reference, sum.
template <int kBlocks>
__device__ __forceinline__ void write_partial(const AttentionTask& task, const Unit& unit,
                                              const float (&o)[32 * kBlocks], const RowSums& sums) {
  const RowTotals span = sums.rows();
  const int t = static_cast<int>(threadIdx.x) % 4, stride = task.dim + 4, pair0 = first_pair(unit);
  const bool live0 = pair0 < unit.pairs, live1 = pair0 + 8 < unit.pairs;
  float* to0 = task.partials + static_cast<std::ptrdiff_t>(unit.slot + pair0) * stride;
  float* to1 = to0 + 8 * stride;
#pragma unroll
  for (int x = 0; x < 8 * kBlocks; ++x) {
    if (8 * x >= task.dim) break;
    if (live0) *reinterpret_cast<float2*>(to0 + 8 * x + 2 * t) = {o[4 * x], o[4 * x + 1]};
    if (live1) *reinterpret_cast<float2*>(to1 + 8 * x + 2 * t) = {o[4 * x + 2], o[4 * x + 3]};
  }
  if (t != 0) return;
  if (live0) *reinterpret_cast<float2*>(to0 + task.dim) = {span.r0, span.l0};
  if (live1) *reinterpret_cast<float2*>(to1 + task.dim) = {span.r1, span.l1};
}

template <int kBlocks, int kBytes, bool kShort>
__device__ __forceinline__ void attend(const AttentionTask& task, const Unit& unit, std::uint32_t shared,
                                       const float* scales, float4* total) {
  using S = Shape<kBlocks, kBytes>;
  const std::uint32_t queries = shared, keys = shared + S::kQueryBytes, values = keys + S::kTileBytes;
  const std::uint32_t key_scales = values + S::kTileBytes, value_scales = key_scales + kTile * 4;
  const auto load_keys = [&](int tile) {
    load_tile<kBlocks, kBytes>(task, unit, unit.kv.keys, tile, keys);
    if constexpr (kBytes == 64) load_scales(task, unit, unit.kv.key_scales, tile, key_scales);
    close_copies();
  };
  const auto load_values = [&](int tile) {
    load_tile<kBlocks, kBytes>(task, unit, unit.kv.values, tile, values);
    if constexpr (kBytes == 64) load_scales(task, unit, unit.kv.value_scales, tile, value_scales);
    close_copies();
  };
  float o[32 * kBlocks] = {}, s[32], c0 = 1.0f, c1 = 1.0f;
  RowSums sums;
  sums.start();
  RowTotals totals{};
  const int begin = unit.first_tile, end = unit.end_tile;
  const int p0 = position_of(task, unit, first_pair(unit)), p1 = position_of(task, unit, first_pair(unit) + 8);
  const int lowest = unit.kv.first_position + unit.unit * kPairs / task.group;
  load_queries<kBlocks>(task, unit, queries);
  load_keys(begin);
  load_values(begin);
  for (int tile = begin; tile < end; ++tile) {
    wait_for_older_copies<1>();
    __syncthreads();
    scores<kBlocks, kBytes>(s, task.dim / 16, queries, keys);
    if constexpr (kBytes == 64) scale_scores(s, scales);
    __syncthreads();
    if (tile + 1 < end) load_keys(tile + 1);
    if (tile * kTile + kTile - 1 > lowest) mask_scores(s, tile * kTile, p0, p1);
    const bool rises = weigh_scores(s, sums, task.log2_scale, c0, c1);
    if (rises) {
#pragma unroll
      for (int x = 0; x < 32 * kBlocks; ++x) o[x] *= x % 4 < 2 ? c0 : c1;
    }
    if (tile + 1 < end) {
      wait_for_older_copies<1>();
    } else {
      wait_for_older_copies<0>();
    }
    __syncthreads();
    if constexpr (kBytes == 64) scale_scores(s, scales + kTile);
    std::uint32_t p[16];
    pack_weights(s, p);
    add_values<kBlocks, kBytes>(o, p, values);
    __syncthreads();
    if (tile + 1 < end) load_values(tile + 1);
    if (kShort || (tile + 1 < end && span_of_tile(tile + 1) == span_of_tile(tile))) continue;
    const bool first = span_of_tile(tile) == 0;
    fold<kBlocks>(total, o, fold_rows(sums.rows(), first, totals), first);
    sums.start();
#pragma unroll
    for (int x = 0; x < 32 * kBlocks; ++x) o[x] = 0.0f;
  }
  if constexpr (kShort) {
    write_partial<kBlocks>(task, unit, o, sums);
  } else {
    write_rows<kBlocks>(task, unit, total, totals);
  }
}

template <int kBlocks, int kBytes, bool kShort>
__global__ void __launch_bounds__(kThreads) portable_kernel(const __grid_constant__ AttentionTask task) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ Unit unit;
  using S = Shape<kBlocks, kBytes>;
  for (int x = static_cast<int>(threadIdx.x) * 16; x < S::kShared; x += kThreads * 16)
    *reinterpret_cast<uint4*>(memory + x) = uint4{0, 0, 0, 0};  // dims behind the head's last stay zero
  begin_next();
  wait_for_earlier();
  const AttentionList list = *task.work.list;
  const float* scales = reinterpret_cast<const float*>(memory + S::kQueryBytes + 2 * S::kTileBytes);
  float4* total =
      kShort ? nullptr : task.totals + static_cast<std::ptrdiff_t>(blockIdx.x) * (8 * kBlocks * kThreads) + threadIdx.x;
  ItemNumbers numbers;
  for (;;) {
    __syncthreads();
    if (threadIdx.x < 32) next_item<kPairs, kShort>(task, list, numbers, unit);
    __syncthreads();
    if (unit.end_tile == 0) break;
    attend<kBlocks, kBytes, kShort>(task, unit, shared_address(memory), scales, total);
  }
  if (threadIdx.x == 0) end_items(task);
}

template <int kBlocks>
void launch_blocks(Recorder& recorder, const AttentionTask& task, bool short_pieces, bool fp8) {
  const dim3 grid(static_cast<unsigned>(portable_grid(recorder.card()).blocks));
  const auto launch = [&](auto kernel, std::size_t shared) {
    recorder.launch("attention, portable", kernel, {grid, kThreads, shared, 1, true}, task);
  };
  if (fp8) {
    launch(short_pieces ? portable_kernel<kBlocks, 64, true> : portable_kernel<kBlocks, 64, false>,
           Shape<kBlocks, 64>::kShared);
  } else {
    launch(short_pieces ? portable_kernel<kBlocks, 128, true> : portable_kernel<kBlocks, 128, false>,
           Shape<kBlocks, 128>::kShared);
  }
}

}  // namespace

AttentionGrid portable_grid(const CardTraits& card) { return {kPairs, kPairs, 2 * card.multiprocessors}; }

void launch_portable(Recorder& recorder, const AttentionTask& task, bool short_pieces, bool fp8) {
  constexpr std::array kLaunchers = {launch_blocks<1>, launch_blocks<2>, launch_blocks<3>, launch_blocks<4>};
  kLaunchers[static_cast<std::size_t>((task.dim - 1) / 64)](recorder, task, short_pieces, fp8);
}

}  // namespace steadfast::cuda
