// The delta rule's sequential part: S of 16 value dims and one head in a warp's registers, as sums of matrix
// instructions, walks the units of a piece. Chunks are fed through shared memory: a ring filled by one more warp (long
// pieces), or one slot filled by all (few rows). Then the stream keeps what later rows of its chunk need.
#include "backend/cuda/delta_kernels.h"
#include "backend/cuda/device/copy_ring.h"
#include "backend/cuda/device/delta_parts.h"
#include "backend/cuda/device/operands.h"
#include "backend/cuda/device/wait.h"

namespace steadfast::cuda {
namespace {

using bf16 = __nv_bfloat16;

template <int kKeyDim, int kWarps>
struct Slot {
  static constexpr int kKeyPieces = kKeyDim / 8, kValuePieces = 2 * kWarps;
  static constexpr int kKeys = 0, kQueries = kChunk * kKeyDim * 2, kValues = 2 * kQueries,
                       kAux = kValues + kChunk * kWarps * 32, kBytes = (kAux + DeltaAux::kBytes + 127) / 128 * 128;
};

// What one thread copies of a piece's units, one unit after another.
template <int kKeyDim, int kWarps, int kThreads>
struct Feed {
  using S = Slot<kKeyDim, kWarps>;
  const bf16 *queries, *keys, *values, *earlier;  // of the unit's row 0; earlier: keys of the first unit's earlier rows
  const std::byte* aux;
  std::ptrdiff_t stride, aux_stride;
  int thread;

  __device__ Feed(const DeltaRuleParams& p, const DeltaUnit& unit, const Place& place, int thread_index)
      : stride(p.rows_stride),
        aux_stride(static_cast<std::ptrdiff_t>(p.layout.value_heads) * DeltaAux::kBytes),
        thread(thread_index) {
    const bf16* rows = p.rows + unit.row * stride;
    queries = rows + place.key_head * kKeyDim;
    keys = queries + p.layout.key_width;
    values = rows + 2 * p.layout.key_width + place.first_dim;
    earlier = p.earlier_keys +
              static_cast<std::ptrdiff_t>(unit.piece * p.layout.key_heads + place.key_head) * kChunk * kKeyDim;
    aux = p.aux + unit.index * aux_stride + static_cast<std::ptrdiff_t>(place.head) * DeltaAux::kBytes;
  }
  __device__ __forceinline__ void fill(std::uint32_t slot, int begin, int end) const {
    copy_rows<S::kKeyPieces, kThreads>(slot + S::kKeys, keys, stride, thread, begin, end);
    copy_rows<S::kKeyPieces, kThreads>(slot + S::kQueries, queries, stride, thread, begin, end);
    copy_rows<S::kValuePieces, kThreads>(slot + S::kValues, values, stride, thread, begin, end);
    if (begin > 0 && end == kChunk)
      copy_rows<S::kKeyPieces, kThreads>(slot + S::kKeys, earlier, kKeyDim, thread, 0, begin);
    const int pieces = (end == kChunk ? DeltaAux::kBytes : DeltaAux::kT) / 16;
#pragma unroll
    for (int first = 0; first < DeltaAux::kBytes / 16; first += kThreads)
      if (first + thread < pieces)
        copy_16(slot + S::kAux + 16 * static_cast<std::uint32_t>(first + thread), aux + 16 * (first + thread));
  }
  __device__ void next() {
    queries += kChunk * stride;
    keys += kChunk * stride;
    values += kChunk * stride;
    aux += aux_stride;
  }
};

// One warp's part of a head: value dims first .. first + 15 of S. Values of a sum: rows 8 tile + 2 t + (0, 1, 0, 1),
// value dims first + 2 g + (0, 0, 1, 1).
template <int kKeyDim, int kWarps>
struct Walker {
  using S = Slot<kKeyDim, kWarps>;
  static constexpr int kSteps = kKeyDim / 16;
  float s[2 * kSteps][4];
  float earlier_u[2][4];
  int warp, lane, g, t;

  // S k and S q of the slot's rows.
  __device__ __forceinline__ void products(std::uint32_t slot, float (&key)[2][4], float (&query)[2][4]) const {
    float key_low[2][4] = {}, query_low[2][4] = {};
    const int row = (lane & 7) + (lane >> 4) * 8, side = (lane >> 3) & 1;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      std::uint32_t high[4], low[4], k[4], q[4];
      split_operand(s[2 * step], s[2 * step + 1], high, low);
      const std::uint32_t at = slot + 16 * static_cast<std::uint32_t>(swizzled<S::kKeyPieces>(row, 2 * step + side));
      load_matrices(k, at + S::kKeys);
      load_matrices(q, at + S::kQueries);
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        mma_bf16(key[tile], high, k[2 * tile], k[2 * tile + 1]);
        mma_bf16(query[tile], high, q[2 * tile], q[2 * tile + 1]);
        mma_bf16(key_low[tile], low, k[2 * tile], k[2 * tile + 1]);
        mma_bf16(query_low[tile], low, q[2 * tile], q[2 * tile + 1]);
      }
    }
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        key[tile][i] += key_low[tile][i];
        query[tile][i] += query_low[tile][i];
      }
  }

  // u of the chunk's rows, in place of S k.
  template <bool kWhole>
  __device__ __forceinline__ void corrections(const char* slot, const float* gate, int begin, int end,
                                              float (&u)[2][4]) const {
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        const int row = tile * 8 + 2 * t + x;
        const float beta = gate[DeltaAux::kBeta + row], decayed = gate[DeltaAux::kBetaDecay + row];
        const auto v = *reinterpret_cast<const std::uint32_t*>(
            slot + S::kValues + 16 * swizzled<S::kValuePieces>(row, 2 * warp + g / 4) + g % 4 * 4);
        const bool known = kWhole || (row >= begin && row < end);
        u[tile][x] = known ? __fmaf_rn(-decayed, u[tile][x], beta * low_half(v)) : earlier_u[tile][x];
        u[tile][2 + x] = known ? __fmaf_rn(-decayed, u[tile][2 + x], beta * high_half(v)) : earlier_u[tile][2 + x];
      }
  }

  // One unit: rows [begin, end) of out (this lane's value dims of the chunk's row 0), and S or u moved on. kWhole: all
  // rows of the chunk.
  template <bool kWhole>
  __device__ __forceinline__ void step(const char* slot, int begin, int end, float* out, std::ptrdiff_t out_stride,
                                       float* kept_u, int value_dim) {
    const std::uint32_t address = shared_address(slot);
    const auto* gate = reinterpret_cast<const float*>(slot + S::kAux + DeltaAux::kGates);
    const auto* mix = reinterpret_cast<const uint4*>(slot + S::kAux + DeltaAux::kM) + lane;
    float u[2][4] = {}, query[2][4] = {}, o[2][4] = {};
    products(address, u, query);
    corrections<kWhole>(slot, gate, begin, end, u);
    std::uint32_t high[4], low[4];
    split_operand(u[0], u[1], high, low);
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) multiply_split(o[tile], high, low, mix[tile * 32]);
    const auto keys = [&](int row, int piece) {
      return address + S::kKeys + 16 * static_cast<std::uint32_t>(swizzled<S::kKeyPieces>(row, piece));
    };
    if (kWhole || end == kChunk)
      advance<kKeyDim>(s, reinterpret_cast<const uint4*>(slot + S::kAux + DeltaAux::kT), gate, keys, high, low);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int tile = i / 2, x = i % 2, row = tile * 8 + 2 * t + x;
      if (!kWhole && (row < begin || row >= end)) continue;
      const float decay = gate[DeltaAux::kDecay + row];
      *reinterpret_cast<float2*>(out + row * out_stride) = {__fmaf_rn(decay, query[tile][x], o[tile][x]),
                                                            __fmaf_rn(decay, query[tile][2 + x], o[tile][2 + x])};
      if (!kWhole && end < kChunk) *reinterpret_cast<float2*>(kept_u + row * value_dim) = {u[tile][x], u[tile][2 + x]};
    }
  }
};

template <int kKeyDim, int kWarps>
__device__ Walker<kKeyDim, kWarps> begin_walk(const DeltaRuleParams& p, const DeltaUnit& unit, const Place& place,
                                              int tile) {
  Walker<kKeyDim, kWarps> walker;
  walker.lane = static_cast<int>(threadIdx.x) % 32;
  walker.warp = static_cast<int>(threadIdx.x) / 32;
  walker.g = walker.lane / 4;
  walker.t = walker.lane % 4;
  load_state<kKeyDim>(walker.s, unit.state, tile);
  return walker;
}

// All warps fill the one slot, then walk.
template <int kKeyDim, int kWarps>
__global__ void __launch_bounds__(kWarps * 32, 256 / (kWarps * 32))
    delta_rule_rows(const __grid_constant__ DeltaRuleParams p) {
  using S = Slot<kKeyDim, kWarps>;
  __shared__ alignas(128) char slot[S::kBytes];
  begin_next();
  const Place place = place_of<kWarps>(p.layout);
  const DeltaPiece piece = p.pieces[blockIdx.z];
  const DeltaUnit unit = p.units[piece.first_unit];
  const int thread = static_cast<int>(threadIdx.x), tile = place.first_dim / 16 + thread / 32;
  auto walker = begin_walk<kKeyDim, kWarps>(p, unit, place, tile);
  const int dim = place.first_dim % p.layout.value_dim + walker.warp * 16 + 2 * walker.g;
  float* const u =
      unit.state + p.layout.u + static_cast<std::ptrdiff_t>(place.head) * kChunk * p.layout.value_dim + dim;
  load_earlier_u(walker.earlier_u, u, p.layout.value_dim, piece.start);
  float* out = p.out + unit.row * p.out_stride + place.head * p.layout.value_dim + dim;
  wait_for_earlier();
  Feed<kKeyDim, kWarps, kWarps * 32> feed(p, unit, place, thread);
  int begin = piece.start;
#pragma unroll 1
  for (int i = 0; i < piece.units; ++i) {
    const int end = i + 1 < piece.units ? kChunk : piece.end;
    if (i > 0) {
      __syncthreads();
      load_earlier_u(walker.earlier_u, u, 0, 0);
    }
    feed.fill(shared_address(slot), begin, end);
    feed.next();
    if (i + 1 == piece.units)
      keep<kKeyDim>(p, p.units[piece.first_unit + i], place, thread, kWarps * 32);  // while the copies are on their way
    wait_for_copies();
    __syncthreads();
    walker.template step<false>(slot, begin, end, out, p.out_stride, u, p.layout.value_dim);
    out += kChunk * p.out_stride;
    begin = 0;
  }
  if (piece.units > 1 || piece.end == kChunk) store_state<kKeyDim>(walker.s, unit.state, tile);
}

constexpr int kSlots = 4, kFeeders = 64;

// Two more warps fill a ring of slots.
template <int kKeyDim, int kWarps>
__device__ void feed_ring(const DeltaRuleParams& p, const DeltaPiece& piece, const DeltaUnit& unit, const Place& place,
                          char* slots, std::uint32_t full, std::uint32_t empty, int thread) {
  using S = Slot<kKeyDim, kWarps>;
  Feed<kKeyDim, kWarps, kFeeders> feed(p, unit, place, thread);
#pragma unroll 1
  for (int i = 0; i < piece.units; ++i) {
    const auto at = static_cast<std::uint32_t>(i % kSlots);
    if (i >= kSlots) barrier_wait(empty + 8 * at, static_cast<std::uint32_t>(i / kSlots - 1) & 1);
    feed.fill(shared_address(slots) + at * S::kBytes, i == 0 ? piece.start : 0,
              i + 1 < piece.units ? kChunk : piece.end);
    barrier_arrive_after_copies(full + 8 * at);
    feed.next();
  }
  keep<kKeyDim>(p, p.units[piece.first_unit + piece.units - 1], place, thread, kFeeders);
  wait_for_copies();
}

template <int kKeyDim, int kWarps>
__global__ void __launch_bounds__(kWarps * 32 + kFeeders, 1)
    delta_rule_long(const __grid_constant__ DeltaRuleParams p) {
  using S = Slot<kKeyDim, kWarps>;
  extern __shared__ __align__(128) char slots[];
  const std::uint32_t full = shared_address(slots + kSlots * S::kBytes), empty = full + 8 * kSlots;
  begin_next();
  const Place place = place_of<kWarps>(p.layout);
  const DeltaPiece piece = p.pieces[blockIdx.z];
  const DeltaUnit unit = p.units[piece.first_unit];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kSlots) {
    barrier_init(full + 8 * static_cast<std::uint32_t>(thread), kFeeders);
    barrier_init(empty + 8 * static_cast<std::uint32_t>(thread), kWarps);
  }
  __syncthreads();
  if (thread >= kWarps * 32) {
    wait_for_earlier();
    return feed_ring<kKeyDim, kWarps>(p, piece, unit, place, slots, full, empty, thread - kWarps * 32);
  }
  const int tile = place.first_dim / 16 + thread / 32;
  auto walker = begin_walk<kKeyDim, kWarps>(p, unit, place, tile);
  const int dim = place.first_dim % p.layout.value_dim + walker.warp * 16 + 2 * walker.g;
  float* const u =
      unit.state + p.layout.u + static_cast<std::ptrdiff_t>(place.head) * kChunk * p.layout.value_dim + dim;
  load_earlier_u(walker.earlier_u, u, p.layout.value_dim, piece.start);
  float* out = p.out + unit.row * p.out_stride + place.head * p.layout.value_dim + dim;
  wait_for_earlier();
  int begin = piece.start;
#pragma unroll 1
  for (int i = 0; i < piece.units; ++i) {
    const auto at = static_cast<std::uint32_t>(i % kSlots);
    const int end = i + 1 < piece.units ? kChunk : piece.end;
    barrier_wait(full + 8 * at, static_cast<std::uint32_t>(i / kSlots) & 1);
    if (begin == 0 && end == kChunk) {
      walker.template step<true>(slots + at * S::kBytes, 0, kChunk, out, p.out_stride, u, p.layout.value_dim);
    } else {
      walker.template step<false>(slots + at * S::kBytes, begin, end, out, p.out_stride, u, p.layout.value_dim);
      load_earlier_u(walker.earlier_u, u, 0, 0);
    }
    __syncwarp();
    if (thread % 32 == 0) barrier_arrive(empty + 8 * at);
    out += kChunk * p.out_stride;
    begin = 0;
  }
  store_state<kKeyDim>(walker.s, unit.state, tile);
}

template <int kKeyDim, int kWarps>
void launch(Recorder& recorder, const DeltaRuleParams& params, int pieces, bool pieces_long) {
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(params.layout.value_dim / (16 * kWarps)),
                    static_cast<unsigned>(params.layout.value_heads), static_cast<unsigned>(pieces));
  shape.early = true;
  shape.block = dim3(kWarps * 32);
  if (!pieces_long) return recorder.launch("delta rule, few rows", delta_rule_rows<kKeyDim, kWarps>, shape, params);
  shape.block = dim3(kWarps * 32 + kFeeders);
  shape.shared = static_cast<std::size_t>(kSlots) * (Slot<kKeyDim, kWarps>::kBytes + 2 * sizeof(std::uint64_t));
  recorder.launch("delta rule, many rows", delta_rule_long<kKeyDim, kWarps>, shape, params);
}

template <int kKeyDim>
void launch_of_keys(Recorder& recorder, const DeltaRuleParams& params, int pieces, bool pieces_long) {
  if (params.layout.value_dim % 64 == 0)
    launch<kKeyDim, 4>(recorder, params, pieces, pieces_long);
  else
    launch<kKeyDim, 2>(recorder, params, pieces, pieces_long);
}

}  // namespace

void launch_delta_rule(Recorder& recorder, const DeltaRuleParams& params, int pieces, DeltaPieces kind) {
  if (kind == DeltaPieces::kOneRow) return launch_delta_one(recorder, params, pieces);
  const bool pieces_long = kind == DeltaPieces::kManyRows;
  if (params.layout.key_dim == 128)
    launch_of_keys<128>(recorder, params, pieces, pieces_long);
  else if (params.layout.key_dim == 64)
    launch_of_keys<64>(recorder, params, pieces, pieces_long);
  else
    launch_of_keys<32>(recorder, params, pieces, pieces_long);
}

}  // namespace steadfast::cuda
