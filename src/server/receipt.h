// What a reply says of how it was made, so that it can be made again (design.md 8; docs/receipts.md). All of a receipt
// but its "path" is a function of the request; the path may differ from time to time.
#pragma once

#include <optional>
#include <span>

#include "engine/service.h"

namespace steadfast {

// Of one choice, before its reply: all that the reply depends on, as used.
struct Receipt {
  Json content;                     // the request in its canonical form: see request_digest()
  Json arithmetic;                  // {"target", "act", "prompt_act", "kv_dtype", "version"}
  std::optional<std::int64_t> now;  // where the template asked for the time
};

// request: with its seed, as submitted to a service of this card.
Receipt make_receipt(const Request& request, const ModelCard& card, std::optional<std::int64_t> now = std::nullopt);

// The canonical form holds these keys in this order, and nothing else: model_digest, prompt_ids_sha256, seed, sampling,
// max_tokens, stop, stop_ids, ignore_eos. `json` may be a whole receipt; nothing: it lacks one of them.
std::optional<Json> canonical_request(const Json& json);
// SHA-256 of the canonical form's JSON text: UTF-8, no spaces, only what JSON demands escaped.
std::string request_digest(const Json& canonical);

// The canonical form, then request_digest, arithmetic, now (where set), ids_sha256 (of the reply), path.
Json to_json(const Receipt& receipt, std::span<const TokenId> ids, const ReplyPath& path);

Json to_json(const Arithmetic& arithmetic);

// A float as its shortest decimal form, not as the double that it widens to.
Json shortest(float value);

}  // namespace steadfast
