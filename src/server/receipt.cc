// A receipt repeats the canonical form of its request, so that the digest can be computed from the receipt alone.
#include "server/receipt.h"

#include <algorithm>

#include "server/api_error.h"
#include "server/digest.h"

namespace steadfast {

namespace {

constexpr const char* kCanonicalKeys[] = {"model_digest", "prompt_ids_sha256", "seed",      "sampling", "max_tokens",
                                          "stop",         "stop_ids",          "ignore_eos"};

Json sampling_json(const SamplingParams& sampling) {
  Json json = {{"temperature", shortest(sampling.temperature)},
               {"top_k", sampling.top_k},
               {"top_p", shortest(sampling.top_p)},
               {"min_p", shortest(sampling.min_p)},
               {"repetition_penalty", shortest(sampling.repetition_penalty)},
               {"presence_penalty", shortest(sampling.presence_penalty)},
               {"frequency_penalty", shortest(sampling.frequency_penalty)}};
  Json bias = Json::object();
  for (const auto& [id, value] : sampling.logit_bias) bias[std::to_string(id)] = shortest(value);
  if (!bias.empty()) json["logit_bias"] = std::move(bias);
  return json;
}

Json to_json(const ReplyPath& path) {
  Json json = {{"kv", path.page > 0 ? "paged" : "whole"}};
  if (path.page > 0) json["page"] = path.page;
  json["prefix_rows"] = path.prefix_rows;
  json["prompt_pieces"] = path.prompt_pieces;
  json["rounds"] = path.rounds;
  json["rounds_shared"] = path.rounds_shared;
  json["set_aside"] = path.set_aside;
  return json;
}

}  // namespace

Json shortest(float value) { return Json::parse(fmt::format("{}", value), nullptr, false); }

Json to_json(const Arithmetic& arithmetic) {
  return {{"target", arithmetic.target},
          {"act", arithmetic.act},
          {"prompt_act", arithmetic.prompt_act},
          {"kv_dtype", arithmetic.kv_dtype},
          {"version", arithmetic.version}};
}

Receipt make_receipt(const Request& request, const ModelCard& card, std::optional<std::int64_t> now) {
  // What the window leaves is the limit of a request that names none.
  const int room = card.window - static_cast<int>(request.prompt.size());
  const int limit = request.max_tokens > 0 ? std::min(request.max_tokens, room) : room;
  Receipt receipt;
  receipt.content = {{"model_digest", card.digest},   {"prompt_ids_sha256", sha256_of_ids(request.prompt)},
                     {"seed", request.sampling.seed}, {"sampling", sampling_json(request.sampling)},
                     {"max_tokens", limit},           {"stop", request.stop},
                     {"stop_ids", request.stop_ids},  {"ignore_eos", request.ignore_eos}};
  receipt.arithmetic = to_json(card.arithmetic);
  receipt.now = now;
  return receipt;
}

std::optional<Json> canonical_request(const Json& json) {
  Json content = Json::object();
  for (const char* key : kCanonicalKeys) {
    const auto found = json.find(key);
    if (found == json.end()) return std::nullopt;
    content[key] = *found;
  }
  return content;
}

std::string request_digest(const Json& canonical) { return hex(sha256(json_text(canonical))); }

Json to_json(const Receipt& receipt, std::span<const TokenId> ids, const ReplyPath& path) {
  Json json = receipt.content;
  json["request_digest"] = request_digest(receipt.content);
  json["arithmetic"] = receipt.arithmetic;
  if (receipt.now) json["now"] = *receipt.now;
  json["ids_sha256"] = sha256_of_ids(ids);
  json["path"] = to_json(path);
  return json;
}

}  // namespace steadfast
