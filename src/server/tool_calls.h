// The inside of one <tool_call> block to a function's name and arguments: Hermes JSON and Qwen3.5 XML (model-spec 7.5).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/chat_template.h"

namespace steadfast {

enum class ToolFormat { kNone, kJson, kXml };

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON text of an object
  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

// {"name": ..., "arguments": {...}}; nothing where the body is anything else.
std::optional<ToolCall> read_json_call(std::string_view body);

// <function=NAME><parameter=K>\nV\n</parameter>...</function>; values get their types from the request's `tools`
// (null: strings). Missing closing marks are forgiven where the next mark tells where a value ended.
std::optional<ToolCall> read_xml_call(std::string_view body, const Json& tools);

}  // namespace steadfast
