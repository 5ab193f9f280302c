// Parsing of call bodies, and values from text by a JSON schema's type.
#include "server/tool_calls.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "server/json_parse.h"

namespace steadfast {

namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Python's literals written as JSON: quotes, True, False, None, tuples. Nothing where a string does not end.
std::optional<std::string> json_of_python(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kWords = {
      {{"True", "true"}, {"False", "false"}, {"None", "null"}}};
  std::string out;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\' && i + 1 < text.size()) {
        const char next = text[++i];
        out += next == '\'' ? std::string("'") : std::string{'\\', next};
      } else if (c == quote) {
        out += '"';
        quote = 0;
      } else {
        out += c == '"' ? std::string("\\\"") : std::string(1, c);
      }
      continue;
    }
    const auto word = std::find_if(kWords.begin(), kWords.end(),
                                   [&](const auto& pair) { return text.substr(i).starts_with(pair.first); });
    if (word != kWords.end()) {
      out += word->second;
      i += word->first.size() - 1;
    } else if (c == '\'' || c == '"') {
      quote = c;
      out += '"';
    } else {
      out += c == '(' ? '[' : c == ')' ? ']' : c;
    }
  }
  if (quote != 0) return std::nullopt;
  return out;
}

// The schema's type in lower case, of anyOf and of lists of types the first that is not null; empty: unknown.
struct TypeName {
  std::string name;
  bool nullable = false;
};

void add_type(const Json& type, TypeName& out) {
  if (!type.is_string()) return;
  const auto name = lower(type.get_ref<const std::string&>());
  if (name == "null") {
    out.nullable = true;
  } else if (out.name.empty()) {
    out.name = name;
  }
}

TypeName type_of(const Json& schema) {
  TypeName out;
  if (!schema.is_object()) return out;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_array()) {
      for (const Json& one : *type) add_type(one, out);
    } else {
      add_type(*type, out);
    }
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    const auto options = schema.find(key);
    if (options == schema.end() || !options->is_array()) continue;
    for (const Json& option : *options) {
      if (option.is_object() && option.contains("type")) add_type(option["type"], out);
    }
  }
  if (out.name.empty() && schema.contains("enum")) out.name = "enum";
  return out;
}

const Json* parameter_schema(const Json& tools, const std::string& function, const std::string& parameter) {
  if (!tools.is_array()) return nullptr;
  const Json::json_pointer properties("/function/parameters/properties");
  for (const Json& tool : tools) {
    if (tool.value(Json::json_pointer("/function/name"), "") != function || !tool.contains(properties)) continue;
    const Json& all = tool[properties];
    const auto found = all.is_object() ? all.find(parameter) : all.end();
    return found == all.end() ? nullptr : &*found;
  }
  return nullptr;
}

bool starts_with_any(const std::string& name, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) { return name.starts_with(start); });
}

Json number_of(std::string_view text, bool whole) {
  auto parsed = parse_json(trimmed(text));
  if (!parsed || !parsed->is_number() || (whole && !parsed->is_number_integer())) return std::string(text);
  if (parsed->is_number_float()) {
    const double value = parsed->get<double>();
    constexpr double kExact = 9007199254740992.0;
    if (value == static_cast<double>(static_cast<std::int64_t>(std::clamp(value, -kExact, kExact)))) {
      return static_cast<std::int64_t>(value);
    }
  }
  return std::move(*parsed);
}

Json container_of(std::string_view text) {
  if (auto parsed = parse_json(text)) return std::move(*parsed);
  if (const auto json = json_of_python(text)) {
    if (auto parsed = parse_json(*json)) return std::move(*parsed);
  }
  return std::string(text);
}

Json typed_value(std::string_view text, const Json* schema) {
  const TypeName type = schema == nullptr ? TypeName{} : type_of(*schema);
  const std::string& name = type.name;
  const bool is_text = name.empty() || starts_with_any(name, {"str", "text", "varchar", "char", "enum"});
  const auto word = trimmed(text);
  if ((word == "null" || word == "None") && (type.nullable || !is_text)) return nullptr;
  if (is_text) return std::string(text);
  if (starts_with_any(name, {"int", "uint", "long", "short", "unsigned"})) return number_of(text, true);
  if (starts_with_any(name, {"num", "float", "double"})) return number_of(text, false);
  if (starts_with_any(name, {"bool", "binary"})) {
    const auto value = lower(word);
    if (value == "true" || value == "false") return value == "true";
    return std::string(text);
  }
  if (starts_with_any(name, {"object", "array", "dict", "list"})) return container_of(text);
  return std::string(text);
}

constexpr std::string_view kFunctionOpen = "<function=", kFunctionClose = "</function>";
constexpr std::string_view kParameterOpen = "<parameter=", kParameterClose = "</parameter>";

struct Value {
  std::string_view text;
  std::size_t next;  // where the search for the next parameter goes on
};

// A value ends at the first </parameter> after which the next parameter or the end follows: one inside a value's own
// text is followed by more text. Where that mark is missing, a <parameter= at a line's start or the end ends it.
Value value_at(std::string_view text, std::size_t from) {
  const auto next_open = text.find(std::string("\n") + std::string(kParameterOpen), from);
  for (auto close = text.find(kParameterClose, from); close != std::string_view::npos;
       close = text.find(kParameterClose, close + 1)) {
    if (next_open != std::string_view::npos && close > next_open) break;
    const auto after = close + kParameterClose.size();
    const auto rest = text.find_first_not_of(kSpace, after);
    if (rest == std::string_view::npos || text.substr(rest).starts_with(kParameterOpen)) {
      return {text.substr(from, close - from), after};
    }
  }
  if (next_open != std::string_view::npos) return {text.substr(from, next_open - from + 1), next_open + 1};
  return {text.substr(from), text.size()};
}

std::string_view without_frame(std::string_view value) {
  if (value.starts_with('\n')) value.remove_prefix(1);
  if (value.ends_with('\n')) value.remove_suffix(1);
  return value;
}

}  // namespace

std::optional<ToolCall> read_json_call(std::string_view body) {
  auto parsed = parse_json(trimmed(body));
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const auto name = parsed->find("name");
  if (name == parsed->end() || !name->is_string() || name->get_ref<const std::string&>().empty()) return std::nullopt;
  Json arguments = Json::object();
  if (const auto found = parsed->find("arguments"); found != parsed->end() && !found->is_null()) {
    if (found->is_string()) {
      auto inner = parse_json(found->get_ref<const std::string&>());
      if (!inner) return std::nullopt;
      arguments = std::move(*inner);
    } else {
      arguments = *found;
    }
  }
  if (!arguments.is_object()) return std::nullopt;
  return ToolCall{name->get<std::string>(), json_text(arguments)};
}

std::optional<ToolCall> read_xml_call(std::string_view body, const Json& tools) {
  std::string_view text = trimmed(body);
  if (!text.starts_with(kFunctionOpen)) return std::nullopt;
  const auto name_end = text.find('>');
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::string name(trimmed(text.substr(kFunctionOpen.size(), name_end - kFunctionOpen.size())));
  if (name.empty() || name.find_first_of("<\n") != std::string::npos) return std::nullopt;
  text.remove_prefix(name_end + 1);
  if (text.ends_with(kFunctionClose)) text.remove_suffix(kFunctionClose.size());
  Json arguments = Json::object();
  std::size_t at = 0;
  while (true) {
    const auto open = text.find_first_not_of(kSpace, at);
    if (open == std::string_view::npos) break;
    if (!text.substr(open).starts_with(kParameterOpen)) return std::nullopt;
    const auto key_end = text.find('>', open);
    if (key_end == std::string_view::npos) return std::nullopt;
    const auto key_start = open + kParameterOpen.size();
    const std::string key(trimmed(text.substr(key_start, key_end - key_start)));
    if (key.empty() || key.find_first_of("<\n") != std::string::npos) return std::nullopt;
    const Value value = value_at(text, key_end + 1);
    arguments[key] = typed_value(without_frame(value.text), parameter_schema(tools, name, key));
    at = value.next;
  }
  return ToolCall{name, json_text(arguments)};
}

}  // namespace steadfast
