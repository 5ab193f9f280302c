// What host and kernels share about linears: how weights and activations lie in device memory, how K is cut into
// slices, and what a launch is told. No kernel here.
// Weights: [tile of 128 features][group of pack_group(form) chunks of 64 inputs][8 strips of 16 features][chunk]
// [strip_bytes(form)]: a strip's chunks of a group lie side by side, and so do strips; the last group may have fewer
// chunks. Features and inputs are padded with zeros. A strip's chunk holds the A fragments of mma.m16n8k16 (lane = 4 g
// + t, words a0..a3 of
// features g, g + 8 at inputs 2t, 2t + 1 and 2t + 8, 2t + 9 of each k16 step), then scale and bias of features g, g + 8
// for each g. Activations: bf16 [chunk][padded row][64], the 16-byte piece p of a row at p XOR (row & 7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace steadfast::cuda {

inline constexpr int kStripFeatures = 16;
inline constexpr int kTileStrips = 8;
inline constexpr int kTileFeatures = kStripFeatures * kTileStrips;
inline constexpr int kChunk = 64;
inline constexpr int kChunkRowBytes = kChunk * 2;  // a row's inputs of one chunk, bf16

// Codes of 2 to 4 bits lie in 4 bits, of 5 to 8 in 8. Scales are bf16, times a power of two that makes a code's bits,
// read as bf16, the code; or float where the file's are F16 or F32, or bf16 too large for that power.
enum class Form : std::uint8_t {
  kFour,        // groups of 64 or 128, bf16 scales
  kFourSplit,   // groups of 32, bf16 scales
  kFourFloat,   // any group, float scales
  kEight,       // any group, bf16 scales
  kEightFloat,  // any group, float scales
  kDense,       // bf16 weights
};

constexpr int code_bytes(Form form) {
  if (form == Form::kDense) return 2048;
  return form == Form::kEight || form == Form::kEightFloat ? 1024 : 512;
}
constexpr bool float_scales(Form form) { return form == Form::kFourFloat || form == Form::kEightFloat; }
constexpr int groups_per_chunk(Form form) { return form == Form::kDense ? 0 : form == Form::kFour ? 1 : 2; }
constexpr int group_bytes(Form form) { return float_scales(form) ? 128 : 64; }  // of one group of a strip
constexpr int strip_bytes(Form form) { return code_bytes(form) + groups_per_chunk(form) * group_bytes(form); }

// A code in bits 4..7 of a bf16 is code * 2^-129, in bits 0..7 code * 2^-133 (the subnormal scale, and linear up to
// 255).
constexpr int scale_exponent(Form form) { return form == Form::kEight ? 133 : 129; }

// Chunks that lie side by side: what one copy of a few strips brings.
constexpr int pack_group(Form form) { return strip_bytes(form) <= 640 ? 4 : strip_bytes(form) <= 1280 ? 2 : 1; }

constexpr int divide_up(int a, int b) { return (a + b - 1) / b; }
constexpr int round_up(int a, int b) { return divide_up(a, b) * b; }
constexpr int chunks_of(int in) { return round_up(divide_up(in, kChunk), 2); }  // kernels take them in pairs

// The rule of K slices, by the weight's shape alone. Each slice is one fp32 chain in ascending k16 steps from zero; the
// slices' sums are added in ascending order. Narrow weights need slices so that few rows can use the whole card.
constexpr int linear_slices(int out, int in) {
  const int chunks = chunks_of(in);
  if (out >= 16384 || chunks < 8) return 1;
  return chunks < 16 ? 2 : 4;
}
// Slice s holds chunks [slice_begin(s), slice_begin(s + 1)); slices begin at multiples of kSliceUnit.
inline constexpr int kSliceUnit = 4;
constexpr int slice_begin(int chunks, int slices, int s) {
  return s < slices ? chunks / kSliceUnit * s / slices * kSliceUnit : chunks;
}
// The same of 2^shift slices.
constexpr int shifted_slice_begin(int chunks, int shift, int s) {
  return s >> shift != 0 ? chunks : (chunks / kSliceUnit * s >> shift) * kSliceUnit;
}

// Where a strip's chunk lies, in strip_bytes(form) from its tile's begin; chunks: of the weight.
constexpr int strip_place(Form form, int chunks, int strip_of_tile, int chunk) {
  const int group = pack_group(form), first = chunk / group * group;
  const int size = chunks - first < group ? chunks - first : group;
  return first * kTileStrips + strip_of_tile * size + chunk - first;
}

// From a strip's chunk to the next strip's, in strip_bytes(form).
constexpr int strip_step(Form form, int chunks, int chunk) {
  const int rest = chunks - chunk / pack_group(form) * pack_group(form);
  return rest < pack_group(form) ? rest : pack_group(form);
}

inline constexpr int kMostJobs = 4;

struct JobView {
  const std::uint8_t* weight = nullptr;
  float* out = nullptr;
  const float* bias = nullptr;
  const float* add = nullptr;
  std::int64_t stride = 0;  // floats between rows of out, and of add
  int features = 0;
  int first_tile = 0;  // of the launch's tiles, which are the jobs' tiles one after another
  int tiles = 0;
  int slices = 1;
};

// Jobs of one launch share x and the form of their weights; their slices are 1 or `slices`.
struct LinearLaunch {
  JobView jobs[kMostJobs];
  const std::uint8_t* x = nullptr;
  const float* factors = nullptr;     // a row's, which its sums are multiplied by; nullptr: none
  float* partials = nullptr;          // [strip][part][R / 8][32 lanes] float4, where parts > 1
  std::uint32_t* counters = nullptr;  // a strip's, zero before and after, where parts > 1
  int job_count = 0, tiles = 0;
  int rows = 0, padded_rows = 0;
  int chunks = 0, slices = 1;
  int parts = 1;            // 1, or `slices`: blocks that share a strip, one for each slice
  int blocks_per_part = 1;  // schedule alone, like all below
  int pass_units = 1;
  struct {
    int tall = 0, full = 0, pieces = 0, left = 0, units = 0;
  } wide;  // row tiles; whole units; small units of those not whole; small units a pair for the last rows; all
  struct {
    float* handed = nullptr;  // [worker][warp][R / 8][32 lanes] float4 on their way to the next worker; then their own
    std::uint32_t* flags = nullptr;  // of warps: what they hand on is there; zero before and after
    int columns = 0, workers = 0;
  } mid;  // linear_cut.h
};
// Graphs are found by their parameters' bytes.
static_assert(std::has_unique_object_representations_v<LinearLaunch>);

// Of the mid kernels: warps that share a tile, pairs of warpgroups that have tiles of their own and share rows.
inline constexpr int kTeamWarps = 8;
constexpr int mid_teams(int rows) { return rows <= 64 ? 2 : 1; }  // at most
constexpr int mid_teams(Form form, int rows) {
  return form == Form::kEightFloat && rows == 64 ? 1 : mid_teams(rows);  // by registers
}

inline constexpr int kSmallRows = 64;  // of the wide kernel's small units

// ---- a chain: linears of few rows that follow one another, in one launch (device/linear_chain.h) ----

inline constexpr int kChainRows = 8;
inline constexpr int kChainWarps = 18;  // that multiply; two more bring weights and rows
inline constexpr int kChainThreads = (kChainWarps + 2) * 32;
inline constexpr int kMostStages = 6;
inline constexpr int kMostParts = 4;

// What a stage leaves: its jobs' outputs; the output of its one job, and for the next stage that output times the next
// norm's weight, in bf16, with the squares of each strip; or silu(job 0) * job 1 in bf16 for the next stage alone.
enum class Ending : std::int32_t { kStore, kNormed, kSilu };

struct ChainJob {
  const std::uint8_t* weight = nullptr;
  float* out = nullptr;
  const float* bias = nullptr;
  const float* add = nullptr;
  std::int64_t stride = 0;
  std::int32_t features = 0, slice_shift = 0;  // 2^slice_shift slices
  std::int32_t first_strip = 0, strips = 0;    // of the stage's strips, the jobs' one after another
};

struct ChainStage {
  ChainJob jobs[kMostJobs];
  const std::uint8_t* x = nullptr;  // bf16 [chunk][row][64], pieces of a row swizzled as above
  const float* factors = nullptr;   // [row]; or
  const float* squares = nullptr;   // [row][strips of x], of which the factors are made; or neither
  std::uint8_t* next_x = nullptr;
  float* next_squares = nullptr;
  const float* gain = nullptr;  // the next norm's weight
  std::int32_t job_count = 0, chunks = 0, in = 0;
  float eps = 0;
  std::int32_t strips = 0;  // of all jobs
  Ending ending = Ending::kStore;
  // Schedule alone. A unit is a strip, with kSilu one of each job; 2^team_shift warps share a unit: its slices, or the
  // two strips. A block has `units` of them, the first `more` blocks (behind `rotation`) one more, in passes of
  // pass_units; or, of one job, `sharers` blocks share a tile. A part has at most part_chunks chunks.
  std::int32_t units = 0, more = 0, rotation = 0, sharers = 0, team_shift = 0, passes = 1, pass_units = 0;
  std::int32_t part_chunks = 0;
  std::int32_t next_chunks = 0;
};
static_assert(sizeof(ChainStage) == kMostJobs * 56 + 48 + 56 + 4 + 4, "no padding: graphs are found by these bytes");

struct LinearChain {
  ChainStage stages[kMostStages];
  std::uint32_t* counters = nullptr;  // one a stage, one of blocks that have ended; zero before and after
  std::int32_t stage_count = 0, rows = 0;
};

}  // namespace steadfast::cuda
