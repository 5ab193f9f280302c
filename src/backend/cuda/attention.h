// Attention of a round on CUDA: every row of every piece over its stream's positions 0 .. p, by one arithmetic
// (docs/arithmetic.md): scores are fp32 sums of bf16 products, weights bf16, spans of 512 positions (1,024 from
// position 8,192) folded in ascending order. fp8 keys and values are taken as the bf16 numbers that they stand for.
// Which kernel runs follows the card, the head's dims and the rows of each piece; a row's bits follow none of these.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/cuda/recorder.h"

namespace steadfast::cuda {

enum class AttentionSchedule : std::uint8_t { kBest, kPortable };  // kPortable: for checks

struct AttentionArgs {
  const std::uint16_t* queries = nullptr;  // bf16, [rows][heads * dim], normed and rotated (store_kv.h writes them)
  AttentionShape shape;
  std::span<const Piece> pieces;     // rows in order from 0
  std::span<const CacheView> views;  // one a piece, of this layer; pages: host memory
  Matrix out;                        // float32, not rounded
  AttentionSchedule schedule = AttentionSchedule::kBest;
};

void attention(Recorder& recorder, const AttentionArgs& args);

// Scratch that any round of these sizes needs. positions: of all streams' caches together.
std::size_t attention_scratch_bytes(const CardTraits& card, const AttentionShape& shape, int rows, int pieces,
                                    std::size_t positions);
// The round's host data of one layer.
std::size_t attention_arena_bytes(int pieces, std::size_t window, int page_positions);

// "wgmma" or "mma.sync": for `info`.
const char* attention_kernel_name(const CardTraits& card, int dim);

}  // namespace steadfast::cuda
