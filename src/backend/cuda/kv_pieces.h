// The pieces of a round as the card reads them: where each stream's keys and values lie, at which positions its rows
// are, and its page table. Put into the round's arena once a layer, read by store_kv and attention alike. Layout inside
// a page's part of one head (P positions, T = min(P, 64)), keys and values alike:
//   [P / T tiles][blocks of 64 dims][T positions][64 dims], in 16-byte pieces; in a full block the piece of a position
//   lies at index XOR (position mod 8) (bf16) or XOR (position / 2 mod 4) (fp8). A last block of 16, 32 or 48 dims has
//   no XOR. bf16: a piece is 8 dims. fp8: a piece is 16 dims, byte 2u is dim u, byte 2u + 1 is dim u + 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/recorder.h"

namespace steadfast::cuda {

struct KvPiece {
  std::byte *keys, *values;  // of the layer
  float *key_scales, *value_scales;
  std::int32_t first_row, rows, first_position;
  std::int32_t table;  // index of its first page in the tables
  std::int32_t page_shift, page_positions;
};

struct KvPieces {
  std::vector<KvPiece> list;  // ascending first_row
  const std::int32_t* tables = nullptr;
  int rows = 0;
  int kv_heads = 0, dim = 0;
  bool fp8 = false;
};

// Puts the tables into the arena. Addresses depend on the number of pieces and, when a table outgrows a power of two of
// pages (from 64), on that.
KvPieces list_pieces(Recorder& recorder, std::span<const Piece> pieces, std::span<const CacheView> views);

// Whether the card's kernels read this cache: the sentence says what to choose instead.
Status check_kv(DType dtype, int dim);

}  // namespace steadfast::cuda
