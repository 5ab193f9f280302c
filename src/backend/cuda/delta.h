// Gated DeltaNet on the card (ops/delta.h, model-spec 1.6): the convolution and the delta rule of one layer, all pieces
// of a round in one launch (pieces of one row), two or three more (others). Arithmetic: anchored chunks of 16 rows at
// absolute positions. A stream keeps S at its chunk's start and, of the chunk's rows so far, u, the key, the cumulative
// log decay and beta; a row is computed from these alone, so its bits do not depend on which rows share its round, and
// S is rewritten at a chunk's end only. With c the cumulative log decays of the chunk's rows, inclusive:
//   A[p][j] = beta_p (k_p.k_j) e^(c_p - c_j), j < p;   T = (I + A)^-1, forward substitution in float32, ascending
//   P[p][j] = (q_p.k_j) e^(c_p - c_j), j <= p;         M = P T, chains over ascending rows
//   u_p = beta_p v_p - beta_p e^c_p (S k_p);           o_p = e^c_p (S q_p) + sum over j of M[p][j] u_j
//   S' = e^c_15 S + sum over p of e^(c_15 - c_p) (T u)_p k_p
// Queries, keys (normed) and values are rounded to bf16 once; S, u, T, M are float32, and enter products as two bf16
// (high and low, the sums apart for S, one after the other for u). Products are chains of k16 matrix instructions.
#pragma once

#include <cstddef>
#include <span>

#include "backend/backend.h"
#include "backend/cuda/recorder.h"

namespace steadfast::cuda {

struct DeltaArgs {
  DeltaShape shape;
  DeltaWeights weights;
  Matrix x;     // [rows, conv_width], before the convolution
  Matrix a, b;  // [rows, value_heads]
  std::span<const Piece> pieces;
  std::span<const DeltaState> states;  // of delta_state_bytes(), zeroed when the stream begins
  Matrix mixed;                        // room for [rows, conv_width] floats: bf16 rows of pieces of more than one row
  Matrix out;                          // [rows, value_width]
};

// Shapes that the kernels have: key dims 32, 64 or 128, value dims 32 or a multiple of 64, 4 taps at most, value heads
// a multiple of key heads and at most 8 times as many.
Status check_delta_shape(const DeltaShape& shape);

void delta(Recorder& recorder, const DeltaArgs& args);

// Bytes of a stream's state of one layer: conv and state of DeltaState.
DeltaStateBytes delta_state_bytes(const DeltaShape& shape);

// What one call needs of the recorder, at most.
std::size_t delta_scratch_bytes(const DeltaShape& shape, int rows, int pieces);
std::size_t delta_arena_bytes(int rows, int pieces);

}  // namespace steadfast::cuda
