// What the launcher of the draw and its kernels share. Scratch of a draw: bests, limits, searches, bins, then raw
// logits of rows whose log-probabilities are asked for.
#pragma once

#include <cstdint>

#include "backend/cuda/draw.h"

namespace steadfast::cuda {

constexpr int kDrawChunk = 4096;  // logits of a block

struct Best {
  float score;
  std::int32_t id;
};

// What the filters keep of a row: values whose key is above `key`, or equal with an id of at most `id`.
struct DrawLimit {
  float peak;  // largest logit, after the temperature
  std::uint32_t key;
  std::int32_t id;
};

// Where a search for a limit stands: the bits of the key found so far, from the top.
struct DrawSearch {
  unsigned long long before, target;  // sums on the near side of the key; the sum that the key's own must pass
  std::uint32_t prefix, floor;        // floor: the least key that top-k keeps
  std::uint32_t missed, unused;       // missed: even all sums together do not pass the target
};
constexpr int kDrawBins = 2048;

// Masses of probability are whole numbers: e^(x - peak) in units of 2^-38.
enum class DrawSum { kCount, kMass };

struct DrawParams {
  float* logits;
  std::ptrdiff_t stride;
  const DrawRow* rows;
  const LogitEdit* edits;
  Best* bests;               // [rows][chunks]
  DrawLimit* limits;         // [rows]
  DrawSearch* searches;      // [rows]
  unsigned long long* bins;  // [rows][kDrawBins]
  float* raw;                // [rows][width]; used where log-probabilities are asked for
  DrawResult* results;
  std::int64_t width, chunks;
};

// Each launches one kernel over `rows` rows.
void launch_keep_raw(Recorder& recorder, const DrawParams& params, int rows);
void launch_edit(Recorder& recorder, const DrawParams& params, int rows);
void launch_scale(Recorder& recorder, const DrawParams& params, int rows);
// The peak, and a limit that keeps all; bins are zero afterwards.
void launch_limit(Recorder& recorder, const DrawParams& params, int rows);
// One of three steps of the search: kCount for the k-th largest, then kMass for what top-p drops.
void launch_search(Recorder& recorder, const DrawParams& params, int rows, DrawSum sum, int level);
void launch_score(Recorder& recorder, const DrawParams& params, int rows);
void launch_pick(Recorder& recorder, const DrawParams& params, int rows);
void launch_logprobs(Recorder& recorder, const DrawParams& params, int rows);

}  // namespace steadfast::cuda
