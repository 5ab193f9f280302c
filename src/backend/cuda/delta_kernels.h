// What the launcher and the kernels of the delta rule share: units of work, layouts, parameters.
// A unit is the part of one chunk of 16 positions that one piece computes; a piece's units lie together, in order.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/recorder.h"

namespace steadfast::cuda {

constexpr int kChunk = 16;
constexpr int kDeltaTaps = 4;  // the history is a ring of as many rows: slot = position % 4
constexpr int kMostRatio = 8;  // value heads of one key head

struct DeltaUnit {
  float* conv;   // [4][conv_width]
  float* state;  // DeltaLayout
  int row;       // round's row of the chunk's position 0 (may lie outside the piece)
  int start;     // chunk's position of the piece's first row: negative in units behind the first
  int end;       // behind its last row in this chunk; 0: a spare unit, nothing to do
  int position;  // absolute, of the chunk's position 0
  int piece;
  int index;  // of the unit among the round's
};

// A piece of more than one row.
struct DeltaPiece {
  int first_unit, units;
  int start, end;  // of its first row in the first unit's chunk; behind its last row in the last unit's chunk
};

// Offsets in floats inside DeltaUnit::state.
struct DeltaLayout {
  int key_heads, value_heads, key_dim, value_dim, conv_width, key_width, ratio, tiled;
  std::size_t u, k, c, beta, floats;
  // S: [value_heads][value_dim / 16][key_dim / 8][32 lanes][4], the sums of mma_bf16: lane 4 g + t holds value dims
  // 16 tile + 2 g + (0, 0, 1, 1) and key dims 8 i + 2 t + (0, 1, 0, 1).
  // u: [value_heads][16][value_dim]; k: [key_heads][16][key_dim] bf16; c, beta: [value_heads][16].

  __host__ __device__ int key_head(int value_head) const { return tiled ? value_head % key_heads : value_head / ratio; }
  __host__ __device__ int value_head(int key_head, int i) const {
    return tiled ? key_head + i * key_heads : key_head * ratio + i;
  }
};

// What the preparation leaves for a unit and value head, in bytes: M's fragments (2 tiles of 8 rows x 32 lanes x
// [high b0, b1, low b0, b1]), gates, T's fragments.
struct DeltaAux {
  static constexpr int kM = 0, kGates = 1024, kT = 1024 + 336, kBytes = kT + 1024;
  // Floats behind kGates, [16] each; the chunk's whole decay is one.
  static constexpr int kBeta = 0, kBetaDecay = 16, kDecay = 32, kRest = 48, kLog = 64, kWhole = 80;
};

// Parameters of kernels have no padding: the recorder compares their bytes.
struct DeltaFrontParams {
  DeltaLayout layout;
  const DeltaUnit* units;
  const float *x, *a, *b;
  std::ptrdiff_t x_stride, a_stride, b_stride;
  const float *conv_weight, *a_weight, *dt_bias;
  int taps;
  float query_scale;
  __nv_bfloat16* rows;
  std::ptrdiff_t rows_stride;
  std::byte* aux;  // [units][value_heads][DeltaAux::kBytes]
  __nv_bfloat16*
      earlier_keys;  // [pieces][key_heads][16][key_dim]: keys of a first unit's earlier rows, if it ends its chunk
};

struct DeltaRuleParams {
  DeltaLayout layout;
  const DeltaPiece* pieces;
  const DeltaUnit* units;
  const float* x;
  std::ptrdiff_t x_stride;
  std::ptrdiff_t taps;
  const __nv_bfloat16* rows;
  std::ptrdiff_t rows_stride;
  const std::byte* aux;
  const __nv_bfloat16* earlier_keys;
  float* out;
  std::ptrdiff_t out_stride;
};

// Few pieces of one row: all in one launch.
struct DeltaFusedParams {
  DeltaFrontParams front;  // units: one a piece; rows, aux, earlier_keys: none
  float* out;
  std::ptrdiff_t out_stride;
};

// How the rule's launch goes about its pieces; the arithmetic is one. kOneRow: `units` are those of the pieces, in
// their order; kFewRows: one chunk after another; kManyRows: chunks are fetched ahead.
enum class DeltaPieces { kOneRow, kFewRows, kManyRows };

void launch_delta_front(Recorder& recorder, const DeltaFrontParams& params, int units);
void launch_delta_rule(Recorder& recorder, const DeltaRuleParams& params, int pieces, DeltaPieces kind);
void launch_delta_one(Recorder& recorder, const DeltaRuleParams& params, int pieces);
void launch_delta_fused(Recorder& recorder, const DeltaFusedParams& params, int pieces);

}  // namespace steadfast::cuda
