// POST /v1/chat/completions: its body as a checked value, ready for the template.
#pragma once

#include "server/generation.h"

namespace steadfast {

struct ChatRequest {
  std::string model;  // empty: the request names none
  Generation generation;
  TemplateInput input;           // messages in the template's form; tools null with tool_choice "none"
  std::string reasoning_effort;  // empty: absent
};

// What is checked here is the request alone; what the model's template can do is checked by the caller.
Outcome<ChatRequest> read_chat_request(const Json& body, const ModelCard& card, const RequestLimits& limits);

// The part that renders: messages, tools, template options; of chat requests and of /tokenize.
void read_template_input(FieldReader& fields, const RequestLimits& limits, TemplateInput& input);

}  // namespace steadfast
