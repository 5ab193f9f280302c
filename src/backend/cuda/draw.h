// The keyed draw on the card (rows/draw.h): the same filters, noise and ties, so the same id from the same logits. Sums
// of probabilities are integers, e^(x - peak) in units of 2^-38, so that no order enters; they decide top-p and
// log-probabilities. Logits are changed in place. Only the results come back.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/recorder.h"

namespace steadfast::cuda {

constexpr int kMostTop = 20;  // log-probabilities besides the drawn id's

// One row's sampling values as the card reads them.
struct DrawRow {
  double min_p_log;   // ln min_p; -infinity: off
  double drop;        // 1 - top_p; 0: off
  float temperature;  // 0: greedy
  float repetition, presence, frequency;
  std::uint32_t key;  // draw_key(seed, position)
  std::int32_t vocab;
  std::int32_t top_k;              // 0: off
  std::int32_t first_edit, edits;  // of this row in the list of edits
  std::int32_t top_logprobs;       // -1: none
};

// A logit that bias or penalties change; one an id and row.
struct LogitEdit {
  std::int32_t id;
  float bias;
  std::int32_t in_reply;  // times
  std::int32_t seen;      // in prompt or reply, under a repetition penalty
};

struct DrawResult {
  std::int32_t id;
  float logprob;
  std::int32_t top_count;
  std::int32_t top_ids[kMostTop];
  float top_logprobs[kMostTop];
};

// results: device memory, [rows]. Scratch: draw_scratch_bytes.
void draw(Recorder& recorder, const Matrix& logits, std::span<const DrawJob> jobs, DrawResult* results);
std::size_t draw_scratch_bytes(int rows, int vocab);

}  // namespace steadfast::cuda
