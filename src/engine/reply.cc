// Keys of requests, and words for reasons.
#include "engine/reply.h"

#include <xxhash.h>

namespace steadfast {

std::uint64_t default_seed(const Request& request) {
  std::uint64_t hash = XXH3_64bits(request.prompt.data(), request.prompt.size() * sizeof(TokenId));
  const auto mix = [&hash](const void* data, std::size_t bytes) { hash = XXH3_64bits_withSeed(data, bytes, hash); };
  const SamplingParams& s = request.sampling;
  const float values[] = {s.temperature,      s.top_p, s.min_p, s.repetition_penalty, s.presence_penalty,
                          s.frequency_penalty};
  mix(values, sizeof values);
  mix(&s.top_k, sizeof s.top_k);
  for (const auto& [id, bias] : s.logit_bias) {
    mix(&id, sizeof id);
    mix(&bias, sizeof bias);
  }
  return hash;
}

std::uint64_t choice_seed(std::uint64_t seed, int index) {
  if (index == 0) return seed;
  return XXH3_64bits_withSeed(&index, sizeof index, seed);
}

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      break;
  }
  return "error";
}

}  // namespace steadfast
