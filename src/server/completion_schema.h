// POST /v1/completions, /tokenize and /detokenize: their bodies as checked values.
#pragma once

#include <variant>

#include "server/generation.h"

namespace steadfast {

using Prompt = std::variant<std::string, std::vector<TokenId>>;

struct CompletionRequest {
  std::string model;
  Generation generation;
  std::vector<Prompt> prompts;  // at least one
  bool echo = false;
};

Outcome<CompletionRequest> read_completion_request(const Json& body, const ModelCard& card,
                                                   const RequestLimits& limits);

struct TokenizeRequest {
  std::string model;
  std::optional<std::string> prompt;  // else messages
  TemplateInput input;
  bool with_texts = false;  // return_token_strs
};

Outcome<TokenizeRequest> read_tokenize_request(const Json& body, const RequestLimits& limits);

struct DetokenizeRequest {
  std::string model;
  std::vector<TokenId> ids;
};

Outcome<DetokenizeRequest> read_detokenize_request(const Json& body, const ModelCard& card);

}  // namespace steadfast
