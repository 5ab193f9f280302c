// Ways to compute the same thing, and the comparison of bits: what `verify` and the tests of the row law share.
#pragma once

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

// "equal", or how many values differ and the first position that does: compares bits, so NaN equals NaN, 0 differs from
// -0.
std::string first_difference(std::span<const float> a, std::span<const float> b, std::size_t width);

}  // namespace steadfast
