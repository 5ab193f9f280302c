// The digest is taken of a JSON text with fixed keys in a fixed order; docs/api.md lists them.
#include "server/receipt.h"

#include "server/api_error.h"
#include "server/digest.h"

namespace steadfast {

Json shortest(float value) { return Json::parse(fmt::format("{}", value), nullptr, false); }

Receipt make_receipt(const Request& request, const std::string& model_digest) {
  const SamplingParams& sampling = request.sampling;
  Json bias = Json::object();
  for (const auto& [id, value] : sampling.logit_bias) bias[std::to_string(id)] = shortest(value);
  Receipt receipt;
  receipt.seed = sampling.seed;
  receipt.sampling = {{"temperature", shortest(sampling.temperature)},
                      {"top_k", sampling.top_k},
                      {"top_p", shortest(sampling.top_p)},
                      {"min_p", shortest(sampling.min_p)},
                      {"repetition_penalty", shortest(sampling.repetition_penalty)},
                      {"presence_penalty", shortest(sampling.presence_penalty)},
                      {"frequency_penalty", shortest(sampling.frequency_penalty)}};
  if (!bias.empty()) receipt.sampling["logit_bias"] = std::move(bias);
  const Json content = {{"model", model_digest},
                        {"prompt_ids_sha256", sha256_of_ids(request.prompt)},
                        {"seed", receipt.seed},
                        {"sampling", receipt.sampling},
                        {"max_tokens", request.max_tokens},
                        {"stop", request.stop},
                        {"stop_ids", request.stop_ids},
                        {"ignore_eos", request.ignore_eos}};
  receipt.request_digest = hex(sha256(json_text(content)));
  return receipt;
}

Json to_json(const Receipt& receipt, const std::string& model_digest, std::span<const TokenId> ids) {
  return {{"model_digest", model_digest},
          {"request_digest", receipt.request_digest},
          {"seed", receipt.seed},
          {"sampling", receipt.sampling},
          {"ids_sha256", sha256_of_ids(ids)}};
}

}  // namespace steadfast
