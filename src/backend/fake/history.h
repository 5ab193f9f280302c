// The hash of a stream's history that stands in for a model's arithmetic: chain_p is a function of tokens 0..p, and the
// logits of row p are a function of chain_p and of the number of layers.
#pragma once

#include <cstdint>
#include <span>

#include "text/tokenizer.h"

namespace steadfast::fake {

constexpr std::uint64_t kStart = 0;  // the chain before position 0, as zeroed memory has it

std::uint64_t mix(std::uint64_t a, std::uint64_t b);
// The chain at `position`, behind the one before it.
std::uint64_t chain(std::uint64_t before, TokenId token, int position);
// What a layer adds to a row that carries `hash`.
std::uint64_t after_layer(std::uint64_t hash, std::uint64_t chain_here, int layer);
void fill_logits(std::uint64_t hash, std::span<float> logits);

// The logits of a row whose chain is `here`, in a model of `layers` layers: what any engine must come to.
void logits_behind(std::uint64_t here, int layers, std::span<float> logits);

}  // namespace steadfast::fake
