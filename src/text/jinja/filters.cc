// Filters on any value, and the table's front: find_filter.
#include <algorithm>
#include <iterator>

#include "text/jinja/builtins.h"
#include "text/jinja/printing.h"

namespace steadfast::jinja {
namespace {

Value default_filter(Call& call) {
  const auto arguments = call.bind({"default_value", "boolean"});
  const bool is_boolean = arguments[1] != nullptr && arguments[1]->truthy();
  if (!call.self.is_undefined() && !(is_boolean && !call.self.truthy())) return call.self;
  return arguments[0] == nullptr ? call.vm.heap().text("") : *arguments[0];
}

std::optional<std::string> indentation(const Value* value) {
  if (value == nullptr || value->is_none()) return std::nullopt;
  if (value->is_text()) return value->as_text();
  const std::int64_t width = to_index(*value, "tojson's indent");
  if (width > 1000) fail("tojson's indent is more than 1000");
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, width)), ' ');
}

// Hugging Face's tojson: json.dumps without the HTML escapes of Jinja's own.
Value tojson(Call& call) {
  const auto arguments = call.bind({"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = arguments[0] != nullptr && arguments[0]->truthy();
  style.indent = indentation(arguments[1]);
  if (style.indent) style.item_separator = std::string(1, ',');
  if (arguments[2] != nullptr && !arguments[2]->is_none()) {
    const std::vector<Value> separators = items_of(call.vm.heap(), *arguments[2]);
    if (separators.size() != 2 || !separators[0].is_text() || !separators[1].is_text()) {
      fail("tojson's separators are two strings: (item_separator, key_separator)");
    }
    style.item_separator = separators[0].as_text();
    style.key_separator = separators[1].as_text();
  }
  style.sort_keys = arguments[3] != nullptr && arguments[3]->truthy();
  call.vm.heap().spend_walk(call.self);
  return call.vm.heap().text(to_json(call.self, style));
}

Value string_filter(Call& call) {
  static_cast<void>(call.bind({}));
  if (call.self.is_text()) return call.self;
  call.vm.heap().spend_walk(call.self);
  return call.vm.heap().text(to_text(call.self));
}

Value length_filter(Call& call) {
  static_cast<void>(call.bind({}));
  const std::int64_t size = length_of(call.self);
  if (size < 0) fail("object of type '{}' has no len()", call.self.type_name());
  if (call.self.is_text()) call.vm.heap().spend_text(call.self.as_text().size());
  return Value::integer(size);
}

Value safe_filter(Call& call) {
  static_cast<void>(call.bind({}));
  call.vm.heap().spend_walk(call.self);
  return call.vm.heap().safe_text(to_text(call.self));
}

Value escape_filter(Call& call) {
  static_cast<void>(call.bind({}));
  if (call.self.is_safe_text()) return call.self;
  call.vm.heap().spend_walk(call.self);
  return call.vm.heap().safe_text(escape_html(to_text(call.self)));
}

Value force_escape_filter(Call& call) {
  static_cast<void>(call.bind({}));
  call.vm.heap().spend_walk(call.self);
  return call.vm.heap().safe_text(escape_html(to_text(call.self)));
}

Value attr_filter(Call& call) {
  const auto arguments = call.bind({"name"}, 1);
  if (!arguments[0]->is_text()) fail("attr() needs the attribute's name as a string");
  // Attributes only: a dict's keys are not looked at.
  const std::string& name = arguments[0]->as_text();
  if (call.self.dict() != nullptr && find_method(call.self, name) == nullptr) {
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", name));
  }
  return call.vm.attribute(call.self, name);
}

constexpr NamedBuiltin kFilters[] = {
    {"attr", attr_filter},       {"count", length_filter}, {"d", default_filter},
    {"default", default_filter}, {"e", escape_filter},     {"escape", escape_filter},
    {"length", length_filter},   {"safe", safe_filter},    {"forceescape", force_escape_filter},
    {"string", string_filter},   {"tojson", tojson},
};

}  // namespace

Builtin find_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const auto& f) { return f.name == name; });
  if (found != std::end(kFilters)) return found->builtin;
  for (const auto find : {find_text_filter, find_sequence_filter, find_selection_filter, find_number_filter}) {
    if (const Builtin builtin = find(name)) return builtin;
  }
  return nullptr;
}

}  // namespace steadfast::jinja
