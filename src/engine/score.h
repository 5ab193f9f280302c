// Scoring: the logits of every position of given ids, in pieces of any size (by the row law the pieces change nothing).
#pragma once

#include <functional>
#include <span>

#include "engine/load_model.h"

namespace steadfast {

// Called with consecutive rows of logits: first position, rows, [rows, vocab] float32 on the host.
using LogitsSink = std::function<Status(int first, int rows, const float* logits)>;

// chunk: rows a round, at least 1. page: positions of a page; 0: a whole window. Ids must be in the vocabulary and fit
// the model's positions.
Status score(const LoadedModel& loaded, std::span<const TokenId> ids, int chunk, const LogitsSink& sink, int page = 0);

// -ln p of `id` under the logits, in double.
double negative_log_likelihood(std::span<const float> logits, TokenId id);

}  // namespace steadfast
