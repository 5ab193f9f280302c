// Row, Piece and Round: what one forward pass computes (design.md section 1).
// A round is a list of rows from any streams; the rows of one stream lie together, at consecutive positions: a piece.
// A row's role, prompt or reply, follows from its request alone: rows below the prompt's length are the prompt's, the
// last of them too, whose logits draw the first token. Linears may have another arithmetic for each role
// (Backend::prompt_act()).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "text/tokenizer.h"

namespace steadfast {

class StreamState;  // cache/stream_state.h: what a stream holds on the device

// The prompt's length of rows that are all a prompt's, or of any where both roles have one arithmetic.
inline constexpr int kAllPrompt = std::numeric_limits<int>::max();

struct Piece {
  StreamState* stream = nullptr;
  int first_row = 0;  // index of its first row in the round
  int rows = 0;
  int first_position = 0;  // position of its first row
  int prompt_rows = 0;     // so many of its rows, the first ones, are a prompt's, the others a reply's
};

// Rows of a round that lie together and have one role.
struct RoleRun {
  int first_row = 0, rows = 0;
  bool prompt = false;
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
  // Appends a piece of a stream whose prompt has so many tokens; the caller adds to logit_rows.
  void add(StreamState& stream, int first_position, const TokenId* ids, int count, int prompt = kAllPrompt) {
    pieces.push_back({&stream, rows(), count, first_position, std::clamp(prompt - first_position, 0, count)});
    for (int i = 0; i < count; ++i) {
      tokens.push_back(ids[i]);
      positions.push_back(first_position + i);
    }
  }
  // As few as the order of its pieces allows.
  std::vector<RoleRun> role_runs() const {
    std::vector<RoleRun> runs;
    const auto append = [&runs](int first, int count, bool prompt) {
      if (count == 0) return;
      if (runs.empty() || runs.back().prompt != prompt) runs.push_back({first, 0, prompt});
      runs.back().rows += count;
    };
    for (const Piece& piece : pieces) {
      append(piece.first_row, piece.prompt_rows, true);
      append(piece.first_row + piece.prompt_rows, piece.rows - piece.prompt_rows, false);
    }
    return runs;
  }
};

}  // namespace steadfast
