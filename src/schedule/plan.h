// Planning of a round: which streams give how many rows. Knows no device, no model. Replies' next tokens come first,
// then pieces of prompts, oldest stream first, under a budget of rows. By the row law no plan changes a reply.
#pragma once

#include <span>
#include <vector>

namespace steadfast {

struct PlanInput {
  int pending = 0;  // tokens of the stream that were not computed yet, at least 1
};

struct PlanEntry {
  int stream = 0;  // index into the input
  int rows = 0;
};

// Streams in order of age. budget: rows a round, at least 1. piece: the most rows of one stream (0: no limit).
std::vector<PlanEntry> plan_round(std::span<const PlanInput> streams, int budget, int piece);

}  // namespace steadfast
