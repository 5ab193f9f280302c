// Values as text: Python's str() and repr(), and JSON as json.dumps writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "text/jinja/heap.h"

namespace steadfast::jinja {

// str(value): strings as they are, undefined as nothing, everything else as repr.
std::string to_text(const Value& value);
std::string repr(const Value& value);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // none: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
std::string to_json(const Value& value, const JsonStyle& style);

// `what` names the value in errors: "messages".
Value from_json(Heap& heap, const nlohmann::ordered_json& json, std::string_view what);

}  // namespace steadfast::jinja
