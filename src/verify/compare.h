// Ways to compute the same thing, and the comparison of bits: what `verify` and the tests of the row law share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace steadfast {

// `count` ids that depend on the seed alone, all in the model's vocabulary.
std::vector<TokenId> some_ids(const LoadedModel& loaded, int count, std::uint64_t seed);

// Logits of every position, computed in pieces of `chunk` rows: [ids, vocab].
Result<std::vector<float>> logits_of(const LoadedModel& loaded, std::span<const TokenId> ids, int chunk);

// Streams side by side in shared rounds, steps[s] rows of stream s a round; each one's logits. page 0: a window each,
// else pages of one pool, taken in turns so that they lie mixed.
Result<std::vector<std::vector<float>>> logits_together(const LoadedModel& loaded,
                                                        std::span<const std::vector<TokenId>> ids,
                                                        std::span<const int> steps, int page);

// Asks an engine for all requests at once and waits; the ids of each reply. An error of a reply is the Result's.
Result<std::vector<std::vector<TokenId>>> ask(Engine& engine, std::span<const Request> requests);

// Rows of `width` logits that differ in any bit: NaN equals the same NaN, 0 differs from -0.
struct RowDifference {
  std::size_t rows = 0;   // that differ
  std::size_t first = 0;  // the first one's index
  double distance = 0;    // the largest |a - b| in it; infinity where only one is a number
};
RowDifference compare_rows(std::span<const float> a, std::span<const float> b, std::size_t width);

// "equal", or how many rows differ, the first one and the distance there. Sizes may differ too.
std::string first_difference(std::span<const float> a, std::span<const float> b, std::size_t width);

}  // namespace steadfast
