// Methods of lists, tuples, dicts, ranges, loops and cyclers, and the table's front: find_method.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "text/jinja/builtins.h"

namespace steadfast::jinja {
namespace {

Value dict_get(Call& call) {
  const auto arguments = call.bind({"key", "default"}, 1);
  check_hashable(*arguments[0]);
  call.vm.heap().spend(static_cast<std::int64_t>(arguments[0]->extent().weight));
  if (const Value* found = call.self.dict()->find(*arguments[0])) return *found;
  return arguments[1] == nullptr ? Value::none() : *arguments[1];
}

Value dict_keys(Call& call) {
  static_cast<void>(call.bind({}));
  std::vector<Value> items;
  for (const auto& [key, value] : call.self.dict()->entries) items.push_back(key);
  return call.vm.heap().sequence(SequenceType::kDictKeys, std::move(items));
}

Value dict_values(Call& call) {
  static_cast<void>(call.bind({}));
  std::vector<Value> items;
  for (const auto& [key, value] : call.self.dict()->entries) items.push_back(value);
  return call.vm.heap().sequence(SequenceType::kDictValues, std::move(items));
}

Value dict_items(Call& call) {
  static_cast<void>(call.bind({}));
  std::vector<Value> items;
  for (const auto& [key, value] : call.self.dict()->entries) items.push_back(call.vm.heap().tuple({key, value}));
  return call.vm.heap().sequence(SequenceType::kDictItems, std::move(items));
}

// Values never change, so a copy is the value; lists and dicts alike.
Value copy(Call& call) {
  static_cast<void>(call.bind({}));
  return call.self;
}

Value count(Call& call) {
  const auto arguments = call.bind({"value"}, 1);
  const std::vector<Value> items = items_of(call.vm.heap(), call.self);
  return Value::integer(std::count_if(items.begin(), items.end(), [&](const Value& item) {
    return compare(call.vm.heap(), Comparison::kEqual, item, *arguments[0]);
  }));
}

Value index(Call& call) {
  const auto arguments = call.bind({"value", "start", "stop"}, 1);
  const std::vector<Value> items = items_of(call.vm.heap(), call.self);
  const auto size = static_cast<std::int64_t>(items.size());
  const auto bound = [&](const Value* value, std::int64_t fallback) {
    if (value == nullptr) return fallback;
    const std::int64_t given = to_index(*value, "index()'s bound");
    return std::clamp<std::int64_t>(given < 0 ? given + size : given, 0, size);
  };
  const std::int64_t stop = bound(arguments[2], size);
  for (std::int64_t i = bound(arguments[1], 0); i < stop; ++i) {
    if (compare(call.vm.heap(), Comparison::kEqual, items[static_cast<std::size_t>(i)], *arguments[0]))
      return Value::integer(i);
  }
  fail("the value is not in the {}", call.self.type_name());
}

Value loop_cycle(Call& call) {
  const std::vector<Value>& items = call.arguments.positional;
  if (items.empty()) fail("no items for cycling given");
  const auto position = static_cast<std::size_t>(static_cast<const Loop*>(call.self.object())->index);
  return items[position % items.size()];
}

Value loop_changed(Call& call) {
  auto& loop = static_cast<Loop&>(*call.self.object());
  const std::vector<Value>& now = call.arguments.positional;
  const bool is_same = loop.changed && loop.changed->size() == now.size() &&
                       std::equal(now.begin(), now.end(), loop.changed->begin(), [&](const Value& a, const Value& b) {
                         return compare(call.vm.heap(), Comparison::kEqual, a, b);
                       });
  if (!is_same) loop.changed = now;
  return Value::boolean(!is_same);
}

Value cycler_next(Call& call) {
  static_cast<void>(call.bind({}));
  auto& cycler = static_cast<Cycler&>(*call.self.object());
  const Value current = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return current;
}

Value cycler_reset(Call& call) {
  static_cast<void>(call.bind({}));
  static_cast<Cycler&>(*call.self.object()).position = 0;
  return Value::none();
}

Value float_is_integer(Call& call) {
  static_cast<void>(call.bind({}));
  const double number = call.self.as_float();
  return Value::boolean(std::isfinite(number) && std::floor(number) == number);
}

constexpr NamedBuiltin kDictMethods[] = {
    {"copy", copy}, {"get", dict_get}, {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values}};
constexpr NamedBuiltin kListMethods[] = {{"copy", copy}, {"count", count}, {"index", index}};
constexpr NamedBuiltin kTupleMethods[] = {{"count", count}, {"index", index}};
constexpr NamedBuiltin kLoopMethods[] = {{"changed", loop_changed}, {"cycle", loop_cycle}};
constexpr NamedBuiltin kCyclerMethods[] = {{"next", cycler_next}, {"reset", cycler_reset}};
constexpr NamedBuiltin kFloatMethods[] = {{"is_integer", float_is_integer}};

template <std::size_t size>
Builtin find_in(const NamedBuiltin (&table)[size], std::string_view name) {
  const auto* found = std::find_if(std::begin(table), std::end(table), [&](const auto& m) { return m.name == name; });
  return found == std::end(table) ? nullptr : found->builtin;
}

}  // namespace

Builtin find_collection_method(const Value& object, std::string_view name) {
  if (object.dict() != nullptr) return find_in(kDictMethods, name);
  if (object.is_list()) return find_in(kListMethods, name);
  if (object.is_tuple() || object.is_object(ObjectType::kRange)) return find_in(kTupleMethods, name);
  if (object.is_object(ObjectType::kLoop)) return find_in(kLoopMethods, name);
  if (object.is_object(ObjectType::kCycler)) return find_in(kCyclerMethods, name);
  return object.is_float() ? find_in(kFloatMethods, name) : nullptr;
}

Builtin find_method(const Value& object, std::string_view name) {
  if (!object.is_text()) return find_collection_method(object, name);
  if (const Builtin builtin = find_text_method(name)) return builtin;
  return find_text_search_method(name);
}

bool is_mutating_method(const Value& object, std::string_view name) {
  constexpr std::string_view kOfLists[] = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
  constexpr std::string_view kOfDicts[] = {"clear", "pop", "popitem", "setdefault", "update"};
  if (object.is_list()) return std::find(std::begin(kOfLists), std::end(kOfLists), name) != std::end(kOfLists);
  return object.dict() != nullptr && std::find(std::begin(kOfDicts), std::end(kOfDicts), name) != std::end(kOfDicts);
}

}  // namespace steadfast::jinja
