// Slices and elements (access.h), and Interpreter's attributes and items.
#include "text/jinja/access.h"

#include <algorithm>

#include "text/jinja/builtins.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/printing.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

struct Span {
  std::int64_t start, stop, step;
};

// Python's slice.indices.
Span indices(std::int64_t size, const Value& start, const Value& stop, const Value& step) {
  Span span{0, 0, step.is_none() ? 1 : to_index(step, "a slice's step")};
  if (span.step == 0) fail("slice step cannot be zero");
  const bool is_forward = span.step > 0;
  const std::int64_t low = is_forward ? 0 : -1;
  const std::int64_t high = is_forward ? size : size - 1;
  const auto bound = [&](const Value& value, std::int64_t fallback) {
    if (value.is_none()) return fallback;
    const std::int64_t index = to_index(value, "a slice's bound");
    return std::clamp(index < 0 ? index + size : index, low, high);
  };
  span.start = bound(start, is_forward ? low : high);
  span.stop = bound(stop, is_forward ? high : low);
  return span;
}

template <typename Visit>
void for_each_index(const Span& span, Visit visit) {
  for (std::int64_t i = span.start; span.step > 0 ? i < span.stop : i > span.stop; i += span.step) visit(i);
}

Value slice_text(Heap& heap, const Value& object, const Value& start, const Value& stop, const Value& step) {
  const std::string& text = object.as_text();
  heap.spend(static_cast<std::int64_t>(text.size() / 16));
  const auto size = static_cast<std::int64_t>(length(text));
  const Span span = indices(size, start, stop, step);
  std::string result;
  if (size == static_cast<std::int64_t>(text.size())) {
    for_each_index(span, [&](std::int64_t i) { result += text[static_cast<std::size_t>(i)]; });
  } else if (span.step == 1) {
    if (span.stop > span.start) {
      const std::size_t first = byte_of(text, static_cast<std::size_t>(span.start));
      const std::string_view rest = std::string_view(text).substr(first);
      result = rest.substr(0, byte_of(rest, static_cast<std::size_t>(span.stop - span.start)));
    }
  } else {
    heap.spend(size / 4);
    const std::vector<std::string_view> parts = characters(text);
    for_each_index(span, [&](std::int64_t i) { result += parts[static_cast<std::size_t>(i)]; });
  }
  return heap.text_like(object, std::move(result));
}

}  // namespace

Value slice(Heap& heap, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is_text()) return slice_text(heap, object, start, stop, step);
  if (object.is_list() || object.is_tuple()) {
    const std::vector<Value>& items = object.sequence()->items;
    std::vector<Value> result;
    for_each_index(indices(static_cast<std::int64_t>(items.size()), start, stop, step),
                   [&](std::int64_t i) { result.push_back(items[static_cast<std::size_t>(i)]); });
    return heap.sequence(object.sequence()->type, std::move(result));
  }
  if (object.is_object(ObjectType::kRange)) {
    const auto& range = static_cast<const Range&>(*object.object());
    const Span span = indices(range.size(), start, stop, step);
    return Value::object(heap.make<Range>(range.start + span.start * range.step, range.start + span.stop * range.step,
                                          std::clamp(span.step, -range.size() - 1, range.size() + 1) * range.step));
  }
  if (object.dict() != nullptr) fail("a dict cannot be sliced");
  fail("'{}' object is not subscriptable", object.type_name());
}

std::optional<Value> element(Heap& heap, const Value& object, std::int64_t index) {
  const auto within = [&](std::int64_t size) {
    if (index < 0) index += size;
    return index >= 0 && index < size;
  };
  if (object.is_text()) {
    const std::string& text = object.as_text();
    heap.spend(static_cast<std::int64_t>(text.size() / 16));
    if (!within(static_cast<std::int64_t>(length(text)))) return std::nullopt;
    const std::size_t at = byte_of(text, static_cast<std::size_t>(index));
    return heap.text_like(object, text.substr(at, code_point_bytes(text, at)));
  }
  if (object.is_list() || object.is_tuple()) {
    const std::vector<Value>& items = object.sequence()->items;
    if (!within(static_cast<std::int64_t>(items.size()))) return std::nullopt;
    return items[static_cast<std::size_t>(index)];
  }
  if (object.is_object(ObjectType::kRange)) {
    const auto& range = static_cast<const Range&>(*object.object());
    if (!within(range.size())) return std::nullopt;
    return range.at(index);
  }
  return std::nullopt;
}

namespace {

std::optional<Value> loop_attribute(Loop& loop, std::string_view name) {
  const auto neighbour = [](const std::optional<Value>& value, std::string_view which) {
    return value ? *value : Value::undefined(fmt::format("there is no {} item", which));
  };
  if (name == "index0") return Value::integer(loop.index);
  if (name == "index") return Value::integer(loop.index + 1);
  if (name == "first") return Value::boolean(loop.index == 0);
  if (name == "last") return Value::boolean(loop.last());
  if (name == "length") return Value::integer(loop.length());
  if (name == "revindex") return Value::integer(loop.length() - loop.index);
  if (name == "revindex0") return Value::integer(loop.length() - loop.index - 1);
  if (name == "depth") return Value::integer(loop.depth);
  if (name == "depth0") return Value::integer(loop.depth - 1);
  if (name == "previtem") return neighbour(loop.before, "previous");
  if (name != "nextitem") return std::nullopt;
  static_cast<void>(loop.last());
  return neighbour(loop.after, "next");
}

// An attribute that the object itself has, beside its methods.
std::optional<Value> own_attribute(Heap& heap, const Value& object, std::string_view name) {
  Object* owned = object.object();
  if (owned == nullptr) return std::nullopt;
  if (owned->type == ObjectType::kNamespace) {
    const auto* space = static_cast<const Namespace*>(owned);
    heap.spend(static_cast<std::int64_t>(space->attributes.size() / 16));
    const Value* found = space->find(name);
    return found == nullptr ? std::nullopt : std::optional<Value>(*found);
  }
  if (owned->type == ObjectType::kLoop) return loop_attribute(static_cast<Loop&>(*owned), name);
  if (owned->type == ObjectType::kMacro && name == "name") {
    return heap.text(static_cast<const Macro*>(owned)->definition->name);
  }
  if (owned->type == ObjectType::kCycler && name == "current") {
    const auto& cycler = static_cast<const Cycler&>(*owned);
    return cycler.items[cycler.position];
  }
  return std::nullopt;
}

Value no_such(const Value& object, const Value& key) {
  const std::string shown = object.is_none() ? "None" : fmt::format("'{} object'", object.type_name());
  if (key.is_text()) return Value::undefined(fmt::format("{} has no attribute '{}'", shown, key.as_text()));
  return Value::undefined(fmt::format("{} has no element {}", shown, key.is_number() ? repr(key) : key.type_name()));
}

}  // namespace

Value Interpreter::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) fail_undefined(object);
  if (const Builtin method = find_method(object, name)) {
    return Value::object(heap_.make<Function>(name, method, object));
  }
  if (is_mutating_method(object, name)) {
    return Value::undefined(fmt::format(
        "access to attribute '{}' of '{}' object is unsafe: templates cannot change values", name, object.type_name()));
  }
  if (std::optional<Value> own = own_attribute(heap_, object, name)) return *own;
  if (const Dict* dict = object.dict()) {
    if (const Value* found = dict->find(name)) return *found;
  }
  return no_such(object, Value::constant(std::string(name)));
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (object.is_undefined()) fail_undefined(object);
  if (const Dict* dict = object.dict()) {
    const bool is_key = !key.is_list() && key.dict() == nullptr;
    if (is_key) {
      heap_.spend(static_cast<std::int64_t>((key.is_text() ? 1 : dict->entries.size()) * key.extent().weight));
      if (const Value* found = dict->find(key)) return *found;
    }
  } else if (key.is_integral()) {
    if (std::optional<Value> found = element(heap_, object, to_index(key, "an index"))) return *found;
  }
  if (!key.is_text()) return no_such(object, key);
  if (object.dict() != nullptr && find_method(object, key.as_text()) == nullptr) return no_such(object, key);
  return attribute(object, key.as_text());
}

Value Interpreter::attribute_path(const Value& object, const Value& path) {
  if (path.is_none()) return object;
  if (!path.is_text()) return item(object, path);
  Value found = object;
  std::string_view rest = path.as_text();
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string_view name = rest.substr(0, dot);
    const bool is_index =
        !name.empty() && name.size() < 10 && is_class(name, TextClass::kDecimal) && is_class(name, TextClass::kAscii);
    found = item(found, is_index ? Value::integer(std::stoll(std::string(name))) : heap_.text(std::string(name)));
    if (dot == std::string_view::npos) return found;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace steadfast::jinja
