// Python's str() and repr(); the text made so far is checked against the limit as it grows.
#include "text/jinja/printing.h"

#include <algorithm>

#include "text/jinja/numbers.h"
#include "text/jinja/statement.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

constexpr std::size_t kMaxNamespaces = 20;
using Active = std::vector<const Object*>;  // the namespaces being printed: one may hold itself

void append_repr(std::string& out, const Value& value, Active& active);

void check_size(const std::string& out) { Heap::check_text_size(out.size()); }

void append_quoted(std::string& out, const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = code_point_bytes(text, at);
    const std::int32_t c = code_point_at(text, at);
    if (c == quote || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out.append(text, at, bytes);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += c < 0x10000 ? fmt::format("\\u{:04x}", c) : fmt::format("\\U{:08x}", c);
    }
    at += bytes;
  }
  out += quote;
  check_size(out);
}

void append_items(std::string& out, const std::vector<Value>& items, Active& active) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += ", ";
    append_repr(out, items[i], active);
  }
}

void append_sequence(std::string& out, const Sequence& s, Active& active) {
  switch (s.type) {
    case SequenceType::kGenerator:
      out += "<generator object>";
      return;
    case SequenceType::kTuple:
      out += '(';
      append_items(out, s.items, active);
      out += s.items.size() == 1 ? ",)" : ")";
      return;
    case SequenceType::kDictKeys:
      out += "dict_keys(";
      break;
    case SequenceType::kDictValues:
      out += "dict_values(";
      break;
    case SequenceType::kDictItems:
      out += "dict_items(";
      break;
    case SequenceType::kList:
      break;
  }
  out += '[';
  append_items(out, s.items, active);
  out += s.type == SequenceType::kList ? "]" : "])";
}

void append_object(std::string& out, const Object& object, Active& active) {
  switch (object.type) {
    case ObjectType::kRange: {
      const auto& range = static_cast<const Range&>(object);
      out += fmt::format("range({}, {}", range.start, range.stop);
      out += range.step == 1 ? ")" : fmt::format(", {})", range.step);
      return;
    }
    case ObjectType::kNamespace: {
      if (std::find(active.begin(), active.end(), &object) != active.end()) {
        out += "<Namespace {...}>";
        return;
      }
      if (active.size() >= kMaxNamespaces) fail("namespaces are nested more than {} deep", kMaxNamespaces);
      active.push_back(&object);
      out += "<Namespace {";
      bool is_first = true;
      for (const auto& [name, value] : static_cast<const Namespace&>(object).attributes) {
        if (!is_first) out += ", ";
        is_first = false;
        append_quoted(out, name);
        out += ": ";
        append_repr(out, value, active);
      }
      out += "}>";
      active.pop_back();
      return;
    }
    case ObjectType::kMacro: {
      const std::string& name = static_cast<const Macro&>(object).definition->name;
      out += name.empty() ? "<Macro anonymous>" : fmt::format("<Macro '{}'>", name);
      return;
    }
    case ObjectType::kLoop: {
      auto& loop = const_cast<Loop&>(static_cast<const Loop&>(object));
      out += fmt::format("<LoopContext {}/{}>", loop.index + 1, loop.length());
      return;
    }
    case ObjectType::kFunction:
      out += fmt::format("<function {}>", static_cast<const Function&>(object).name);
      return;
    case ObjectType::kJoiner:
      out += "<Joiner>";
      return;
    case ObjectType::kCycler:
      out += "<Cycler>";
      return;
  }
}

void append_repr(std::string& out, const Value& value, Active& active) {
  if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "True" : "False";
  } else if (value.is_int()) {
    out += repr_of(value.as_int());
  } else if (value.is_float()) {
    out += repr_of(value.as_float());
  } else if (value.is_text()) {
    if (value.is_safe_text()) out += "Markup(";
    append_quoted(out, value.as_text());
    if (value.is_safe_text()) out += ")";
  } else if (const Dict* dict = value.dict()) {
    out += '{';
    bool is_first = true;
    for (const auto& [key, item] : dict->entries) {
      if (!is_first) out += ", ";
      is_first = false;
      append_repr(out, key, active);
      out += ": ";
      append_repr(out, item, active);
    }
    out += '}';
  } else if (const Sequence* s = value.sequence()) {
    append_sequence(out, *s, active);
  } else {
    append_object(out, *value.object(), active);
  }
  check_size(out);
}

}  // namespace

std::string to_text(const Value& value) {
  if (value.is_text()) return value.as_text();
  if (value.is_undefined()) return "";
  return repr(value);
}

std::string repr(const Value& value) {
  std::string out;
  Active active;
  append_repr(out, value, active);
  return out;
}

}  // namespace steadfast::jinja
