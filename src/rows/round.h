// Row, Piece and Round: what one forward pass computes (design.md section 1).
// A round is a list of rows from any streams; the rows of one stream lie together, at consecutive positions: a piece.
#pragma once

#include <cstdint>
#include <vector>

#include "text/tokenizer.h"

namespace steadfast {

class StreamState;  // cache/stream_state.h: what a stream holds on the device

struct Piece {
  StreamState* stream = nullptr;
  int first_row = 0;  // index of its first row in the round
  int rows = 0;
  int first_position = 0;  // position of its first row
};

struct Round {
  std::vector<TokenId> tokens;          // [rows]
  std::vector<std::int32_t> positions;  // [rows]
  std::vector<Piece> pieces;
  std::vector<int> logit_rows;  // rows whose logits are wanted, ascending

  int rows() const { return static_cast<int>(tokens.size()); }
  void clear() {
    tokens.clear();
    positions.clear();
    pieces.clear();
    logit_rows.clear();
  }
  // Appends a piece; the caller adds to logit_rows.
  void add(StreamState& stream, int first_position, const TokenId* ids, int count) {
    pieces.push_back({&stream, rows(), count, first_position});
    for (int i = 0; i < count; ++i) {
      tokens.push_back(ids[i]);
      positions.push_back(first_position + i);
    }
  }
};

}  // namespace steadfast
