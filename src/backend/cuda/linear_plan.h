// What host and kernels share about linears: how weights and activations lie in device memory, how K is cut into
// slices, and what a launch is told. No kernel here.
// Weights: [tile of 128 features][chunk of 64 inputs][8 strips of 16 features][strip_bytes(form)]; features and inputs
// are padded with zeros. A strip's chunk holds the A fragments of mma.m16n8k16 (lane = 4 g + t, words a0..a3 of
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

constexpr int divide_up(int a, int b) { return (a + b - 1) / b; }
constexpr int round_up(int a, int b) { return divide_up(a, b) * b; }
constexpr int chunks_of(int in) { return round_up(divide_up(in, kChunk), 2); }  // kernels take them in pairs

// The rule of K slices, by the weight's shape alone. Each slice is one fp32 chain in ascending k16 steps from zero; the
// slices' sums are added in ascending order. Narrow weights need slices so that few rows can use the whole card.
constexpr int linear_slices(int out, int in) {
  const int chunks = chunks_of(in);
  if (out >= 8192 || chunks < 8) return 1;
  return chunks < 16 ? 2 : 4;
}
// Slice s holds chunks [slice_begin(s), slice_begin(s + 1)), an even number of them.
constexpr int slice_begin(int chunks, int slices, int s) { return chunks / 2 * s / slices * 2; }

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
  float* partials = nullptr;          // [strip][part][R / 8][32 lanes] float4, where parts > 1
  std::uint32_t* counters = nullptr;  // a strip's, zero before and after, where parts > 1
  int job_count = 0, tiles = 0;
  int rows = 0, padded_rows = 0;
  int chunks = 0, slices = 1;
  int parts = 1;            // 1, or `slices`: blocks that share a strip, one for each slice
  int blocks_per_part = 1;  // schedule alone, like all below
  int pass_units = 1, stages = 2, stage_bytes = 0;
  struct {
    int tall = 0, full = 0, pieces = 0, left = 0, units = 0;
  } wide;  // row tiles; whole units; small units of those not whole; small units a pair for the last rows; all
};
// Graphs are found by their parameters' bytes.
static_assert(std::has_unique_object_representations_v<LinearLaunch>);

inline constexpr int kSmallRows = 64;  // of the wide kernel's small units

}  // namespace steadfast::cuda
