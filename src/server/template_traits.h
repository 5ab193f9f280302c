// What a model's chat template can do, found out by rendering small conversations with it once, at the start.
#pragma once

#include <set>
#include <string>

#include "server/tool_calls.h"

namespace steadfast {

struct TemplateTraits {
  bool takes_tools = false;              // tools change the prompt
  ToolFormat tools = ToolFormat::kNone;  // how it asks for calls to be written
  bool takes_parts = false;              // renders contents that are lists of text parts
  std::set<std::string> efforts;         // the values of reasoning_effort that it tells apart; empty: it has none
};

TemplateTraits probe_template(const ChatTemplate& chat_template);

// Contents that are lists become one string, joined by newlines, where the template takes strings only.
void fit_contents(const TemplateTraits& traits, Json& messages);

}  // namespace steadfast
