// Linears of up to 8 rows that follow one another (out, gate and up, down, the next layer's first), in one launch: one
// block a multiprocessor, all of them at once on the card. A warp multiplies one strip of 16 features, or some slices
// of it. One warp brings weights, into a ring that goes on from pass to pass and from stage to stage: while the blocks
// wait for each other between stages, weights of the next keep coming. Another brings the rows. A stage leaves its rows
// as the next one wants them (Ending). The sums are those of every other schedule (linear.h).
#pragma once

#include "backend/cuda/device/async_copy.h"
#include "backend/cuda/device/multiply.h"
#include "backend/cuda/device/strip_norm.h"
#include "backend/cuda/device/wait.h"

namespace steadfast::cuda {

template <Form kForm>
struct ChainShape {
  // Chunks of a strip in an entry of the ring.
  static constexpr int kGroup = pack_group(kForm);
  static constexpr int kExchangeBytes = kChainWarps * 32 * 16;
  static constexpr int kRingBytes = 216 * 1024;
  static constexpr int kSharedBytes = kExchangeBytes + kRingBytes;
  // At most so many bytes in an entry; a few must find room.
  static constexpr int kMostEntry =
      kGroup * (kChainWarps * strip_bytes(kForm) + kMostParts * kChainRows * kChunkRowBytes);
  static_assert(kRingBytes >= 3 * kMostEntry);
};

// ---- who does what: the same for those who fetch and those who multiply ----

// Slices of a unit that are shared out, as a power of two; the two strips of a unit of kSilu are not slices.
__device__ inline int part_shift(const ChainStage& stage) {
  return stage.ending == Ending::kSilu ? 0 : stage.team_shift;
}

// Units of this block in a pass.
struct ChainShare {
  int first, units;
};

__device__ inline ChainShare share_of(const ChainStage& stage, int pass) {
  int block = static_cast<int>(blockIdx.x);
  if (stage.sharers > 0) {
    const int tile = block / stage.sharers, part = block % stage.sharers;
    const int from = kTileStrips * part / stage.sharers, to = kTileStrips * (part + 1) / stage.sharers;
    const int first = tile * kTileStrips + from;
    return {first, max(min(to - from, stage.strips - first), 0)};
  }
  block += stage.rotation;
  if (block >= static_cast<int>(gridDim.x)) block -= static_cast<int>(gridDim.x);
  const int mine = stage.units + (block < stage.more ? 1 : 0), done = pass * stage.pass_units;
  return {block * stage.units + min(block, stage.more) + done, max(min(stage.pass_units, mine - done), 0)};
}

__device__ inline int job_at(const ChainStage& stage, int strip) {
  int job = 0;
#pragma unroll
  for (int j = 1; j < kMostJobs; ++j)
    if (j < stage.job_count && strip >= stage.jobs[j].first_strip) job = j;
  return job;
}

__device__ inline int part_begin(const ChainStage& stage, int part) {
  return shifted_slice_begin(stage.chunks, part_shift(stage), part);
}

// A warp's work in a pass: a part of a strip of a job.
struct ChainWork {
  bool active;
  int job, strip;  // of the job
  int unit, member, units;
  int first_slice, slices;
};

__device__ inline ChainWork work_of(const ChainStage& stage, int pass, int warp) {
  const ChainShare share = share_of(stage, pass);
  ChainWork work{};
  work.units = share.units;
  work.unit = warp >> stage.team_shift;
  work.member = warp & ((1 << stage.team_shift) - 1);
  work.active = work.unit < share.units;
  if (!work.active) return work;
  work.strip = share.first + work.unit;
  if (stage.ending == Ending::kSilu) {
    work.job = work.member;
  } else {
    work.job = job_at(stage, work.strip);
    work.strip -= stage.jobs[work.job].first_strip;
  }
  work.slices = 1 << (stage.jobs[work.job].slice_shift - part_shift(stage));
  work.first_slice = part_shift(stage) > 0 ? work.member * work.slices : 0;
  return work;
}

// ---- weights and rows come ----

#if __CUDA_ARCH__ >= 900

// Entries of kGroup chunks: weights [part][strip of the block][chunk], then their rows [part][chunk][row]. They lie one
// behind the other in a ring of bytes, each in one piece; the n-th has the barriers n mod kSlots.
inline constexpr int kSlots = 16;

template <Form kForm>
struct ChainRing {
  std::uint32_t base, full, empty;  // barriers: the two that bring, and bytes; kChainWarps arrivals

  __device__ std::uint32_t full_of(int n) const { return full + n % kSlots * 8; }
  __device__ std::uint32_t empty_of(int n) const { return empty + n % kSlots * 8; }
};

// Sizes of a pass's entries of this block, bytes.
template <Form kForm>
struct EntryShape {
  int strips, weights, all;

  __device__ EntryShape(const LinearChain& chain, const ChainStage& stage, int units) {
    strips = stage.ending == Ending::kSilu ? 2 * units : units;
    const int chunks = pack_group(kForm) << part_shift(stage);
    weights = chunks * strips * strip_bytes(kForm);
    all = weights + chunks * chain.rows * kChunkRowBytes;
  }
};

// Where entries lie, in order; the same for all who ask.
template <Form kForm>
struct RingPlace {
  int n = 0;
  std::uint32_t end = 0;

  __device__ std::uint32_t next(int bytes) {
    ++n;
    if (end + bytes > ChainShape<kForm>::kRingBytes) end = 0;
    const std::uint32_t at = end;
    end += bytes;
    return at;
  }
};

// A lane's copy of an entry: one part's chunks of one run of strips that lie side by side in one tile.
template <Form kForm>
struct WeightCopy {
  static constexpr int kGroup = pack_group(kForm), kBytes = strip_bytes(kForm);
  const std::uint8_t* tile = nullptr;
  int run = 0, strip = 0;     // strips, and the first one's place in the tile
  int first = 0, before = 0;  // where the part begins in an entry, in strips' chunks; strips before the run
  int chunk = 0, left = 0;    // the next, and up to the part's end

  // Copy `index` of a pass, of (run, part). Every lane calls it, with its own strip's tile and run.
  __device__ void open(const ChainStage& stage, int index, int strips, unsigned heads, const std::uint8_t* strip_tile,
                       int tile_strip, int strip_run) {
    const int part = index & ((1 << part_shift(stage)) - 1), number = index >> part_shift(stage);
    const bool real = number < __popc(heads);
    const int head = real ? static_cast<int>(__fns(heads, 0, number + 1)) : 0;
    tile = reinterpret_cast<const std::uint8_t*>(
        __shfl_sync(0xFFFFFFFFu, reinterpret_cast<unsigned long long>(strip_tile), head));
    strip = __shfl_sync(0xFFFFFFFFu, tile_strip, head);
    run = __shfl_sync(0xFFFFFFFFu, strip_run, head);
    chunk = part_begin(stage, part);
    left = real ? part_begin(stage, part + 1) - chunk : 0;
    first = part * strips * kGroup;
    before = head;
  }
  __device__ int chunks() const { return max(min(kGroup, left), 0); }
  __device__ std::uint32_t bytes() const { return run * chunks() * kBytes; }
  __device__ void start(std::uint32_t entry, std::uint32_t full, std::uint64_t policy) {
    if (left > 0)
      bulk_copy(entry + (first + before * chunks()) * kBytes,
                tile + static_cast<std::size_t>(chunk * kTileStrips + strip * chunks()) * kBytes, bytes(), full,
                policy);
    chunk += kGroup;
    left -= kGroup;
  }
};

// The copy of weights of a pass that `lane` starts.
template <Form kForm>
__device__ WeightCopy<kForm> open_copy(const ChainStage& stage, int pass, int lane) {
  const bool pairs = stage.ending == Ending::kSilu;
  const ChainShare share = share_of(stage, pass);
  const int strips = pairs ? 2 * share.units : share.units;
  int job = 0, strip = 0;
  if (lane < strips) {
    job = pairs ? (lane >= share.units ? 1 : 0) : job_at(stage, share.first + lane);
    strip = pairs ? share.first + lane - job * share.units : share.first + lane - stage.jobs[job].first_strip;
  }
  const int before = __shfl_up_sync(0xFFFFFFFFu, job, 1);
  const unsigned heads =
      __ballot_sync(0xFFFFFFFFu, lane < strips && (lane == 0 || before != job || strip % kTileStrips == 0));
  const unsigned later = lane == 31 ? 0 : heads >> (lane + 1);
  const int run = later != 0 ? __ffs(static_cast<int>(later)) : strips - lane;
  const std::uint8_t* const tile =
      stage.jobs[job].weight + static_cast<std::size_t>(strip / kTileStrips * stage.chunks) *
                                   static_cast<std::size_t>(kTileStrips * strip_bytes(kForm));
  WeightCopy<kForm> copy;
  copy.open(stage, lane, strips, heads, tile, strip % kTileStrips, run);
  return copy;
}

__device__ inline unsigned load_acquired(const std::uint32_t* at) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
// Between what threads wrote to memory and bulk copies that read it.
__device__ inline void fence_for_copies() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// A lane's copy of an entry's rows: those of one part's chunks.
template <Form kForm>
struct RowCopy {
  static constexpr int kGroup = pack_group(kForm);
  const std::uint8_t* source = nullptr;
  int step = 0, offset = 0, left = 0;  // bytes of a chunk, in the entry; chunks up to the part's end

  __device__ void open(const LinearChain& chain, const ChainStage& stage, int part) {
    step = chain.rows * kChunkRowBytes;
    offset = part * kGroup * step;
    left = 0;
    if (part >> part_shift(stage) != 0) return;
    const int begin = part_begin(stage, part);
    left = part_begin(stage, part + 1) - begin;
    source = stage.x + static_cast<std::size_t>(begin) * static_cast<std::size_t>(step);
  }
  __device__ std::uint32_t bytes() const { return max(min(kGroup, left), 0) * step; }
  __device__ void start(std::uint32_t entry, std::uint32_t full, std::uint64_t policy) {
    if (left > 0) bulk_copy(entry + offset, source, bytes(), full, policy);
    source += kGroup * step;
    left -= kGroup;
  }
};

// Factors of the stage's rows, into shared memory.
__device__ inline void make_factors(const LinearChain& chain, const ChainStage& stage, int lane, float* factors) {
  if (stage.factors != nullptr) {
    if (lane < chain.rows) factors[lane] = __ldcg(stage.factors + lane);
    return;
  }
  const int strips = divide_up(stage.in, kStripFeatures);
  float sums[kChainRows] = {};
  for (int i = lane; i < strips; i += 32)
#pragma unroll
    for (int row = 0; row < kChainRows; ++row)
      if (row < chain.rows) sums[row] += __ldcg(stage.squares + row * strips + i);
#pragma unroll
  for (int row = 0; row < kChainRows; ++row) {
    const float sum = warp_sum(sums[row]);
    if (lane == 0 && row < chain.rows) factors[row] = norm_factor(sum, stage.in, stage.eps);
  }
}

// One of the two warps that bring: weights, as soon as an entry is free; or rows, once all blocks have ended the stage
// before.
template <Form kForm>
class ChainFeeder {
  using Shape = ChainShape<kForm>;
  static constexpr int kEarly = 2;  // entries whose rows come before the stage's factors are made

 public:
  __device__ ChainFeeder(const LinearChain& chain, const ChainRing<kForm>& ring)
      : chain_(chain), ring_(ring), lane_(static_cast<int>(threadIdx.x) % 32) {}

  __device__ void bring_weights() {
    const std::uint64_t policy = read_once();
    for (int s = 0; s < chain_.stage_count; ++s) {
      const ChainStage& stage = chain_.stages[s];
      for (int pass = 0; pass < stage.passes; ++pass) {
        WeightCopy<kForm> copy = open_copy<kForm>(stage, pass, lane_);
        const EntryShape<kForm> entry(chain_, stage, share_of(stage, pass).units);
        for (int left = stage.part_chunks; left > 0; left -= Shape::kGroup) bring(copy, entry, 0, policy);
      }
    }
  }

  // ready: a barrier of one arrival, that the stage's factors are there.
  __device__ void bring_rows(std::uint32_t ready, float* factors) {
    const std::uint64_t policy = keep_in_l2();
    for (int s = 0; s < chain_.stage_count; ++s) {
      const ChainStage& stage = chain_.stages[s];
      const bool scales = stage.factors != nullptr || stage.squares != nullptr;
      wait_for_rows(s);
      int entries = 0;
      for (int pass = 0; pass < stage.passes; ++pass) {
        RowCopy<kForm> copy;
        copy.open(chain_, stage, lane_);
        const EntryShape<kForm> entry(chain_, stage, share_of(stage, pass).units);
        for (int left = stage.part_chunks; left > 0; left -= Shape::kGroup) {
          bring(copy, entry, entry.weights, policy);
          const bool ends = pass + 1 == stage.passes && left <= Shape::kGroup;
          if (++entries > kEarly || !scales || (entries < kEarly && !ends)) continue;
          make_factors(chain_, stage, lane_, factors);  // while the first rows are on their way
          __syncwarp();
          if (lane_ == 0) barrier_arrive(ready);
        }
      }
    }
  }

 private:
  // A free entry, where it begins. Lane i knows the entry of slot i.
  __device__ std::uint32_t claim(int bytes) {
    const int n = place_.n;
    const std::uint32_t at = place_.next(bytes);
    const bool covers = mine_ >= freed_ && begin_ < at + bytes && end_ > at;
    const int last = max(__reduce_max_sync(0xFFFFFFFFu, covers ? mine_ : -1), n - kSlots);
    for (; freed_ <= last; ++freed_) barrier_wait(ring_.empty_of(freed_), freed_ / kSlots & 1);
    if (lane_ == n % kSlots) mine_ = n, begin_ = at, end_ = at + bytes;
    return at;
  }

  template <typename Copy>
  __device__ void bring(Copy& copy, const EntryShape<kForm>& entry, int offset, std::uint64_t policy) {
    const std::uint32_t full = ring_.full_of(place_.n), at = ring_.base + claim(entry.all) + offset;
    const std::uint32_t bytes = __reduce_add_sync(0xFFFFFFFFu, copy.bytes());
    if (lane_ == 0) barrier_expect(full, bytes);
    __syncwarp();
    copy.start(at, full, policy);
  }

  __device__ void wait_for_rows(int s) {
    if (s == 0) {
      wait_for_earlier();
      return;
    }
    if (lane_ == 0)
      while (load_acquired(chain_.counters + s - 1) < gridDim.x) {
      }
    __syncwarp();
    fence_for_copies();
  }

  const LinearChain& chain_;
  ChainRing<kForm> ring_;
  int lane_;
  RingPlace<kForm> place_;
  int freed_ = 0, mine_ = -1;  // entries that are free again; this lane's entry
  std::uint32_t begin_ = 0, end_ = 0;
};

// ---- sums ----

// One unit's end: values [i] are feature g + 8 (i / 2), row 2 t + i % 2.
struct ChainEnd {
  const LinearChain& chain;
  const ChainStage& stage;
  const float* factors;  // nullptr: none
  int lane;

  __device__ int row(int i) const { return lane % 4 * 2 + i % 2; }
  __device__ int feature(int strip, int i) const { return strip * kStripFeatures + lane / 4 + i / 2 * 8; }
  __device__ bool inside(const ChainJob& job, int strip, int i) const {
    return row(i) < chain.rows && feature(strip, i) < job.features;
  }
  // What the end needs from memory, asked for before the warps wait for each other.
  struct Operands {
    float bias[2] = {}, gain[2] = {}, add[4] = {};
  };
  __device__ Operands operands(const ChainJob& job, int strip) const {
    Operands of;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (job.add != nullptr && inside(job, strip, i))
        of.add[i] = __ldcg(job.add + row(i) * job.stride + feature(strip, i));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int at = feature(strip, 2 * i);
      if (at >= job.features) continue;
      if (job.bias != nullptr) of.bias[i] = __ldg(job.bias + at);
      if (stage.ending == Ending::kNormed) of.gain[i] = __ldg(stage.gain + at);
    }
    return of;
  }
  __device__ void scale(const ChainJob& job, const Operands& of, float (&v)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (factors != nullptr && row(i) < chain.rows) v[i] *= factors[row(i)];
      if (job.bias != nullptr) v[i] += of.bias[i / 2];
      if (job.add != nullptr) v[i] += of.add[i];
    }
  }
  __device__ void store(const ChainJob& job, int strip, const float (&v)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (inside(job, strip, i)) job.out[row(i) * job.stride + feature(strip, i)] = v[i];
  }
  __device__ std::uint8_t* next_at(int row_index, int k) const {
    const int line = k / kChunk * chain.rows + row_index;
    return stage.next_x + static_cast<std::size_t>(line) * kChunkRowBytes + ((k % kChunk / 8) ^ (row_index & 7)) * 16 +
           k % 8 * 2;
  }
  // The next stage's rows; zeros behind the last feature, up to a whole chunk.
  __device__ void leave(const ChainJob& job, int strip, const float (&v)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (row(i) < chain.rows)
        *reinterpret_cast<__nv_bfloat16*>(next_at(row(i), feature(strip, i))) = __float2bfloat16_rn(v[i]);
    if (strip + 1 < job.strips) return;
    for (int row_index = 0; row_index < chain.rows; ++row_index)
      for (int k = job.strips * kStripFeatures + lane * 8; k < stage.next_chunks * kChunk; k += 32 * 8)
        *reinterpret_cast<uint4*>(next_at(row_index, k)) = make_uint4(0, 0, 0, 0);
  }
  __device__ void leave_normed(const ChainJob& job, int strip, const Operands& of, const float (&v)[4]) const {
    float y[4], scaled[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool real = inside(job, strip, i);
      y[i] = real ? v[i] : 0.0f;
      scaled[i] = real ? v[i] * of.gain[i / 2] : 0.0f;
    }
    leave(job, strip, scaled);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float squares = strip_squares_of_lanes(y[i], y[2 + i]);
      if (lane < 4 && row(i) < chain.rows) stage.next_squares[row(i) * job.strips + strip] = squares;
    }
  }
  __device__ void leave_silu(int strip, const float (&gate)[4], const float (&up)[4]) const {
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = inside(stage.jobs[0], strip, i) ? silu(gate[i]) * up[i] : 0.0f;
    leave(stage.jobs[0], strip, v);
  }
};

__device__ inline void meet_multipliers() { asm volatile("bar.sync 1, %0;" ::"n"(kChainWarps * 32) : "memory"); }

template <Form kForm>
class Multiplier {
  using Shape = ChainShape<kForm>;

 public:
  __device__ Multiplier(const LinearChain& chain, const ChainRing<kForm>& ring, std::uint32_t ready,
                        const float* factors, float4* exchange)
      : chain_(chain),
        ring_(ring),
        ready_(ready),
        factors_(factors),
        exchange_(exchange),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32) {
    row_lane_ = (lane_ & ~7) | min(lane_ & 7, chain.rows - 1);  // rows behind the last: columns that nobody reads
  }

  __device__ void run() {
    wait_for_earlier();
    for (int s = 0; s < chain_.stage_count; ++s) {
      const ChainStage& stage = chain_.stages[s];
      const bool scales = stage.factors != nullptr || stage.squares != nullptr;
      for (int pass = 0; pass < stage.passes; ++pass) {
        const ChainWork work = work_of(stage, pass, warp_);
        multiply(stage, work);
        finish(ChainEnd{chain_, stage, scales ? factors_ : nullptr, lane_}, work, pass == 0 && scales);
        if (stage.team_shift > 0 && stage.passes > 1) meet_multipliers();  // the exchange is read
      }
      if (s + 1 == chain_.stage_count) break;
      fence_for_copies();
      meet_multipliers();
      if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(chain_.counters + s) : "memory");
      }
    }
  }

 private:
  __device__ void multiply(const ChainStage& stage, const ChainWork& work) {
    constexpr int kBytes = strip_bytes(kForm);
    const bool pairs = stage.ending == Ending::kSilu, shares = part_shift(stage) > 0;
    const int slice_shift = work.active ? stage.jobs[work.job].slice_shift : 0;
    const int part = shares ? work.member : 0, first = part_begin(stage, part);
    const int count = work.active ? part_begin(stage, part + 1) - first : 0;  // chunks
    const EntryShape<kForm> entry(chain_, stage, work.units);
    const int part_at = part * Shape::kGroup * entry.strips * kBytes;
    const int strip = (pairs ? work.member * work.units : 0) + work.unit;
    const std::uint32_t x_step = chain_.rows * kChunkRowBytes;
    int slice = work.first_slice, slice_end = shifted_slice_begin(stage.chunks, slice_shift, slice + 1) - first;
    int left_behind = (work.unit * ((1 << slice_shift) - work.slices) + slice - work.slices) * 32 + lane_;
    float sum[4] = {0, 0, 0, 0};
    started_ = false;
    const auto close_slice = [&] {
      if (shares && part > 0) {
        exchange_[left_behind] = make_float4(sum[0], sum[1], sum[2], sum[3]);
        left_behind += 32;
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) total_[i] = started_ ? total_[i] + sum[i] : sum[i];
        started_ = true;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] = 0;
      ++slice;
      slice_end = shifted_slice_begin(stage.chunks, slice_shift, slice + 1) - first;
    };
#pragma unroll 1
    for (int done = 0; done < stage.part_chunks; done += Shape::kGroup) {
      const int n = place_.n, size = min(Shape::kGroup, count - done);  // chunks
      const std::uint32_t begin = ring_.base + place_.next(entry.all);
      const std::uint32_t at = begin + part_at + strip * size * kBytes;
      const std::uint32_t x_at = begin + entry.weights + part * Shape::kGroup * x_step;
      barrier_wait(ring_.full_of(n), n / kSlots & 1);
      if (size == Shape::kGroup)
        add_chunks<Shape::kGroup>(at, x_at, x_step, sum);
      else if (Shape::kGroup > 2 && size == 2)
        add_chunks<2>(at, x_at, x_step, sum);
      if (size > 0 && done + size == slice_end) close_slice();
      __syncwarp();
      if (lane_ == 0) barrier_arrive(ring_.empty_of(n));
    }
  }

  // sum += chunks of a strip times their rows.
  template <int kChunks>
  __device__ void add_chunks(std::uint32_t at, std::uint32_t x_at, std::uint32_t x_step, float (&sum)[4]) {
    const std::uint32_t strip[1] = {at};
    steadfast::cuda::multiply<kForm, 8, 1, kChunks>(strip, strip_bytes(kForm), x_at, x_step, lane_, row_lane_,
                                                    reinterpret_cast<float(&)[1][4]>(sum));
  }

  // waits: for the stage's factors.
  __device__ void finish(const ChainEnd& end, const ChainWork& work, bool waits) {
    const ChainStage& stage = end.stage;
    const ChainJob& job = stage.jobs[work.job];
    const bool pairs = stage.ending == Ending::kSilu, first = work.active && work.member == 0;
    ChainEnd::Operands of;
    if (work.active && (pairs || first)) of = end.operands(job, work.strip);
    if (waits) {
      barrier_wait(ready_, ready_phase_);
      ready_phase_ ^= 1;
    }
    if (pairs) {
      if (work.active) end.scale(job, of, total_);
      if (work.active && !first)
        exchange_[work.unit * 32 + lane_] = make_float4(total_[0], total_[1], total_[2], total_[3]);
      meet_multipliers();
      if (!first) return;
      const float4 up = exchange_[work.unit * 32 + lane_];
      end.leave_silu(work.strip, total_, {up.x, up.y, up.z, up.w});
      return;
    }
    if (stage.team_shift > 0) meet_multipliers();
    if (!first) return;
    const int others = (1 << job.slice_shift) - work.slices;
    for (int i = 0; i < others; ++i) {
      const float4 v = exchange_[(work.unit * others + i) * 32 + lane_];
      total_[0] += v.x, total_[1] += v.y, total_[2] += v.z, total_[3] += v.w;
    }
    end.scale(job, of, total_);
    end.store(job, work.strip, total_);
    if (stage.ending == Ending::kNormed) end.leave_normed(job, work.strip, of, total_);
  }

  const LinearChain& chain_;
  ChainRing<kForm> ring_;
  std::uint32_t ready_;
  const float* factors_;
  float4* exchange_;
  int warp_, lane_;
  int row_lane_;
  float total_[4];
  bool started_ = false;
  RingPlace<kForm> place_;
  std::uint32_t ready_phase_ = 0;
};

#endif

template <Form kForm>
__global__ void __launch_bounds__(kChainThreads, 1)
    linear_chain([[maybe_unused]] const __grid_constant__ LinearChain chain) {
#if __CUDA_ARCH__ >= 900
  using Shape = ChainShape<kForm>;
  extern __shared__ __align__(128) std::uint8_t memory[];
  __shared__ __align__(8) std::uint64_t barriers[2 * kSlots + 1];
  __shared__ float factors[kChainRows];
  const std::uint32_t first = shared_address(barriers), ready = first + 16 * kSlots;
  const ChainRing<kForm> ring{shared_address(memory) + Shape::kExchangeBytes, first, first + 8 * kSlots};
  begin_next();
  if (threadIdx.x == 0) {
    for (int i = 0; i < kSlots; ++i) {
      barrier_init(ring.full + i * 8, 2);
      barrier_init(ring.empty + i * 8, kChainWarps);
    }
    barrier_init(ready, 1);
    barriers_visible();
  }
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (warp >= kChainWarps) {
    ChainFeeder<kForm> feeder(chain, ring);
    if (warp == kChainWarps)
      feeder.bring_weights();
    else
      feeder.bring_rows(ready, factors);
    return;
  }
  Multiplier<kForm>(chain, ring, ready, factors, reinterpret_cast<float4*>(memory)).run();
  // This block's rows of the last stage have come, so it reads no counter any more; the last such block clears them.
  if (threadIdx.x == 0 && chain.stage_count > 1 &&
      atomicInc(chain.counters + kMostStages, gridDim.x - 1) == gridDim.x - 1)
    for (int s = 0; s + 1 < chain.stage_count; ++s) chain.counters[s] = 0;
#endif
}

}  // namespace steadfast::cuda
