// What a reply says of how it was made, so that it can be made again (design.md 8).
#pragma once

#include <span>

#include "engine/reply.h"
#include "text/chat_template.h"

namespace steadfast {

// Of one choice, from its request: the seed, the sampling values as used, and the SHA-256 of the request's content.
struct Receipt {
  std::uint64_t seed = 0;
  Json sampling;
  std::string request_digest;
};

Receipt make_receipt(const Request& request, const std::string& model_digest);

// {"model_digest", "request_digest", "seed", "sampling", "ids_sha256"}.
Json to_json(const Receipt& receipt, const std::string& model_digest, std::span<const TokenId> ids);

// A float as its shortest decimal form, not as the double that it widens to.
Json shortest(float value);

}  // namespace steadfast
