// The keyed draw: a token is a function of the logits, the sampling values, the seed and the position
// (model-spec 9.1-9.3). Gumbel-max with Philox4x32-10 noise keyed by (seed, position, token id); ties go to the lowest
// id.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/reply.h"

namespace steadfast {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::uint64_t key);

// The noise's word of a (seed, position): all tokens of a draw derive theirs from it.
std::uint32_t draw_key(std::uint64_t seed, std::int64_t position);
// Standard Gumbel noise of one token under draw_key.
float gumbel(std::uint32_t key, TokenId token);

// What penalties look at: how often each id stood in the prompt and in the reply so far.
struct History {
  std::vector<TokenId> prompt;
  std::vector<TokenId> reply;
};

// Bias and penalties, in place.
void apply_penalties(std::span<float> logits, const SamplingParams& sampling, const History& history);

// Kept between draws to save allocation.
struct DrawScratch {
  std::vector<std::pair<float, TokenId>> sorted;
};

// Divides by the temperature, then sets what top-k, top-p and min-p exclude to -infinity.
void filter(std::span<float> logits, const SamplingParams& sampling, DrawScratch& scratch);

// Draws one id. logits: raw with penalties applied, of ids 0..vocab-1; changed in place.
TokenId draw(std::span<float> logits, const SamplingParams& sampling, std::int64_t position, DrawScratch& scratch);

// log-softmax of the raw logits: the chosen id's, and the `top` largest, descending (ties: lowest id first).
TokenLogprob log_probability(std::span<const float> logits, TokenId id, int top);

}  // namespace steadfast
