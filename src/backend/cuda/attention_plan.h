// How a round's attention is cut into items of work. A unit is up to a fixed number of pairs (row, head of the group)
// of one piece and key-value head: pair i is row i / group, head i mod group. Short pieces: an item is one unit and one
// span, its partial result goes to scratch, a fold adds the spans. Long pieces: an item is one unit and a run of spans,
// added to the unit's total as they end. Nothing here changes any row's bits. What depends on positions is data in the
// arena; the numbers of entries and units depend on the pieces' rows alone.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cuda/kv_pieces.h"

namespace steadfast::cuda {

// Spans of 512 positions below 8,192, of 1,024 from there: by absolute position, part of the arithmetic.
constexpr int kShortSpans = 16, kShortSpanTiles = 8, kLongSpanTiles = 16;
constexpr int kLongFrom = kShortSpans * kShortSpanTiles;  // in tiles of 64

#ifdef __CUDACC__
#define STEADFAST_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define STEADFAST_HOST_DEVICE inline
#endif

STEADFAST_HOST_DEVICE int span_of_tile(int tile) {
  return tile < kLongFrom ? tile / kShortSpanTiles : kShortSpans + (tile - kLongFrom) / kLongSpanTiles;
}
STEADFAST_HOST_DEVICE int first_tile_of_span(int span) {
  return span < kShortSpans ? span * kShortSpanTiles : kLongFrom + (span - kShortSpans) * kLongSpanTiles;
}

#undef STEADFAST_HOST_DEVICE

// A piece as attention takes it; all numbers count what the entries before have.
struct AttentionEntry {
  KvPiece kv;
  std::int32_t units;                    // of one key-value head
  std::int32_t first_unit;               // of all heads
  std::int32_t first_long, first_short;  // short pieces: items that are long spans, short spans
  std::int32_t first_row, partial;       // short pieces: rows, partial rows
};

struct AttentionList {
  std::int32_t items = 0;
  std::int32_t long_items = 0;  // short pieces: items [0, long_items) are spans from kLongFrom on
  std::int32_t runs = 0;        // long pieces: run r has items [first_of_run[r], first_of_run[r + 1]); the first
  std::int32_t run_spans = 0;   // entries' units take part; a run is run_spans spans
};

// A list on the card and what its launches are shaped by; part of a kernel's parameters, so nothing here follows
// positions.
struct AttentionWork {
  const AttentionList* list = nullptr;
  const AttentionEntry* entries = nullptr;
  const std::int32_t* first_of_run = nullptr;
  int count = 0, units = 0, rows = 0;
  int shared_totals = 0;  // long pieces: a total for each unit (else one for each block)
};

struct AttentionPlan {
  const std::int32_t* tables = nullptr;
  bool fp8 = false;
  AttentionWork few, many;       // short pieces, long pieces
  std::size_t partial_rows = 0;  // of few: pairs times spans
};

struct AttentionPlanInput {
  int group = 1, kv_heads = 1, dim = 0;
  int short_pairs = 128, long_pairs = 128;  // of a unit of short and long pieces
  int blocks = 1;                           // that run at once
  bool runs = true;                         // whether a long unit may be cut into runs that several blocks take
  std::size_t most_partial_bytes = 0;
};

// Pieces of at most this many pairs are short, while their partial results fit.
constexpr int kShortPairs = 512;

AttentionPlan plan_attention(Recorder& recorder, const AttentionPlanInput& input, std::span<const Piece> pieces,
                             std::span<const CacheView> views);

}  // namespace steadfast::cuda
