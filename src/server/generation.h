// The fields that chat and completion requests share: sampling, lengths, stops, choices, streaming.
#pragma once

#include "engine/service.h"
#include "server/field_reader.h"

namespace steadfast {

// What one request may ask for at most. Each has its sentence in docs/api.md.
struct RequestLimits {
  int choices = 64;  // n
  int stop_strings = 16;
  std::size_t stop_bytes = 1024;  // of one stop string
  std::size_t bias_entries = 4096;
  std::size_t stop_ids = 256;
  std::size_t messages = 4096;
  std::size_t parts = 4096;  // of one message's content
  std::size_t tools = 256;
  std::size_t prompts = 256;  // of one completion request
};

struct Generation {
  SamplingParams sampling;  // seed is meaningful with has_seed only
  bool has_seed = false;
  int max_tokens = 0;  // 0: until the window is full
  std::vector<std::string> stop;
  std::vector<TokenId> stop_ids;  // the request's own, beside the model's
  bool ignore_eos = false;
  int choices = 1;
  int top_logprobs = -1;    // read by the endpoint's own schema
  bool background = false;  // service_tier "flex", or a priority above 0
  bool stream = false;
  bool include_usage = false;
};

// Reads them with the model's defaults for what is absent; errors stay in `fields`.
Generation read_generation(FieldReader& fields, const ModelCard& card, const RequestLimits& limits);

// Refuses the fields that other servers know and this one does not: silently ignoring them would change the reply.
void refuse_unsupported(FieldReader& fields);

// The engine's request for choice number `choice`: the seed comes from the request, else from its content.
Request make_request(const Generation& generation, std::vector<TokenId> prompt, int choice);

}  // namespace steadfast
