// RowRun: streams driven through shared rounds by a script, without the engine: who joins when, with how many rows a
// round, where rows are rolled back, who leaves. Gives the logits of rows to compare.
#pragma once

#include <span>
#include <vector>

#include "engine/load_model.h"

namespace steadfast {

// Rows that are run and rolled back: at position `at`, in one round, `kept` right tokens and `wrong` others.
struct Detour {
  int at = 0, kept = 0, wrong = 0;
};

struct StreamScript {
  std::vector<TokenId> ids;
  std::vector<int> steps;       // rows of each of its rounds, over and over; the last part is what is left
  int joins = 0;                // the round in which it starts
  int leaves = 0;               // ends after so many positions, its memory given back; 0: at its end
  std::vector<Detour> detours;  // ascending, none reaching past the ids
  int prompt = kAllPrompt;      // rows below this position are a prompt's, the others a reply's
};

// Where the streams' caches lie: a window each, or pages of one pool, in a random order where `scattered`.
struct Placement {
  int page = 0;  // positions; 0: whole windows
  bool scattered = false;
};

// Logits of some of a stream's rows: those whose position is a multiple of the stride, and the last one.
struct TakenRows {
  std::vector<int> positions;
  std::vector<float> logits;  // [positions, vocab]
};

Result<std::vector<TakenRows>> run_rows(const LoadedModel& loaded, std::span<const StreamScript> scripts,
                                        const Placement& placement, int stride);

}  // namespace steadfast
