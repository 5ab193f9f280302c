// Filters on collections: find_sequence_filter.
#include <algorithm>
#include <iterator>

#include "text/jinja/builtins.h"
#include "text/jinja/numbers.h"
#include "text/jinja/printing.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

bool is_set(const Value* argument) { return argument != nullptr && argument->truthy(); }
Value or_none(const Value* argument) { return argument == nullptr ? Value::none() : *argument; }

// What sorting and comparing filters look at: the item's attribute, in lower case unless case matters.
Value key_of(Interpreter& vm, const Value& item, const Value& attribute, bool is_case_sensitive) {
  Value key = vm.attribute_path(item, attribute);
  if (is_case_sensitive || !key.is_text()) return key;
  return vm.heap().text(lower(key.as_text()));
}

// Stable, as Python's sorted(): with `reverse`, equal items keep their order too.
template <typename Item>
void sort_by_key(Heap& heap, std::vector<std::pair<Value, Item>>& keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    heap.spend(static_cast<std::int64_t>(std::min(a.first.extent().weight, b.first.extent().weight)));
    return reverse ? ordered(Comparison::kLess, b.first, a.first) : ordered(Comparison::kLess, a.first, b.first);
  });
}

Value sort_filter(Call& call) {
  const auto arguments = call.bind({"reverse", "case_sensitive", "attribute"});
  Heap& heap = call.vm.heap();
  std::vector<Value> attributes{or_none(arguments[2])};
  if (attributes[0].is_text()) {  // "a,b" sorts by a, then by b
    std::string_view rest = attributes[0].as_text();
    std::vector<Value> names;
    for (std::size_t comma = 0; comma != rest.npos; rest.remove_prefix(comma == rest.npos ? 0 : comma + 1)) {
      comma = rest.find(',');
      names.push_back(heap.text(std::string(rest.substr(0, comma))));
    }
    attributes = std::move(names);
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items_of(heap, call.self)) {
    std::vector<Value> keys;
    for (const Value& attribute : attributes) keys.push_back(key_of(call.vm, item, attribute, is_set(arguments[1])));
    keyed.emplace_back(heap.list(std::move(keys)), item);
  }
  sort_by_key(heap, keyed, is_set(arguments[0]));
  std::vector<Value> sorted;
  for (auto& [key, item] : keyed) sorted.push_back(std::move(item));
  return heap.list(std::move(sorted));
}

Value dictsort_filter(Call& call) {
  const auto arguments = call.bind({"case_sensitive", "by", "reverse"});
  Heap& heap = call.vm.heap();
  const Dict* dict = call.self.dict();
  if (dict == nullptr) fail("dictsort needs a dict, not '{}'", call.self.type_name());
  const std::string by = arguments[1] == nullptr ? "key" : to_text(*arguments[1]);
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : dict->entries) {
    keyed.emplace_back(key_of(call.vm, by == "key" ? key : value, Value::none(), is_set(arguments[0])),
                       heap.tuple({key, value}));
  }
  sort_by_key(heap, keyed, is_set(arguments[2]));
  std::vector<Value> sorted;
  for (auto& [key, item] : keyed) sorted.push_back(std::move(item));
  return heap.list(std::move(sorted));
}

Value unique_filter(Call& call) {
  const auto arguments = call.bind({"case_sensitive", "attribute"});
  Heap& heap = call.vm.heap();
  Entries seen;
  for (const Value& item : items_of(heap, call.self)) {
    Value key = key_of(call.vm, item, or_none(arguments[1]), is_set(arguments[0]));
    seen.emplace_back(std::move(key), heap.list({item}));
  }
  // Building a dict back to front leaves the first item of each key; its order is that of the first appearance.
  std::reverse(seen.begin(), seen.end());
  const Value last_first = heap.dict(seen);
  std::reverse(seen.begin(), seen.end());
  const Value in_order = heap.dict(std::move(seen));
  std::vector<Value> items;
  for (const auto& [key, unused] : in_order.dict()->entries) {
    items.push_back(last_first.dict()->find(key)->sequence()->items[0]);
  }
  return heap.generator(std::move(items));
}

Value extreme(Call& call, bool wants_greatest) {
  const auto arguments = call.bind({"case_sensitive", "attribute"});
  Heap& heap = call.vm.heap();
  const std::vector<Value> items = items_of(heap, call.self);
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const auto key = [&](const Value& item) {
    return key_of(call.vm, item, or_none(arguments[1]), is_set(arguments[0]));
  };
  const Value* best = items.data();
  Value best_key = key(items[0]);
  for (std::size_t i = 1; i < items.size(); ++i) {
    Value candidate = key(items[i]);
    const Comparison comparison = wants_greatest ? Comparison::kGreater : Comparison::kLess;
    if (!compare(heap, comparison, candidate, best_key)) continue;
    best = &items[i];
    best_key = std::move(candidate);
  }
  return *best;
}

Value max_filter(Call& call) { return extreme(call, true); }
Value min_filter(Call& call) { return extreme(call, false); }

Value sum_filter(Call& call) {
  const auto arguments = call.bind({"attribute", "start"});
  Value total = arguments[1] == nullptr ? Value::integer(0) : *arguments[1];
  if (total.is_text()) fail("sum() can't sum strings: use join");
  for (const Value& item : items_of(call.vm.heap(), call.self)) {
    call.vm.heap().spend(1);
    total = apply(call.vm.heap(), Operator::kAdd, total, call.vm.attribute_path(item, or_none(arguments[0])));
  }
  return total;
}

Value join_filter(Call& call) {
  const auto arguments = call.bind({"d", "attribute"});
  Heap& heap = call.vm.heap();
  const std::string separator = arguments[0] == nullptr ? "" : to_text(*arguments[0]);
  std::string out;
  bool is_first = true;
  for (const Value& item : items_of(heap, call.self)) {
    if (!is_first) out += separator;
    is_first = false;
    const Value part = call.vm.attribute_path(item, or_none(arguments[1]));
    heap.spend_walk(part);
    out += to_text(part);
    Heap::check_text_size(out.size());
  }
  return heap.text(std::move(out));
}

Value first_filter(Call& call) {
  static_cast<void>(call.bind({}));
  if (Sequence* s = call.self.sequence(); s != nullptr && s->type == SequenceType::kGenerator) {
    if (s->next < s->items.size()) return s->items[s->next++];
    return Value::undefined("No first item, sequence was empty.");
  }
  const std::vector<Value> items = items_of(call.vm.heap(), call.self);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

bool is_reversible(const Value& value) {
  return value.is_text() || value.is_list() || value.is_tuple() || value.dict() != nullptr ||
         value.is_object(ObjectType::kRange) ||
         (value.sequence() != nullptr && value.sequence()->type != SequenceType::kGenerator);
}

Value last_filter(Call& call) {
  static_cast<void>(call.bind({}));
  if (call.self.is_undefined()) return Value::undefined("No last item, sequence was empty.");
  if (!is_reversible(call.self)) fail("'{}' object is not reversible", call.self.type_name());
  const std::vector<Value> items = items_of(call.vm.heap(), call.self);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value reverse_filter(Call& call) {
  static_cast<void>(call.bind({}));
  Heap& heap = call.vm.heap();
  if (call.self.is_text()) {
    heap.spend_text(call.self.as_text().size());
    const std::vector<std::string_view> parts = characters(call.self.as_text());
    std::string out;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) out += *part;
    return heap.text_like(call.self, std::move(out));
  }
  if (!is_iterable(call.self)) fail("argument must be iterable");
  std::vector<Value> items = items_of(heap, call.self);
  std::reverse(items.begin(), items.end());
  return is_reversible(call.self) ? heap.generator(std::move(items)) : heap.list(std::move(items));
}

Value list_filter(Call& call) {
  static_cast<void>(call.bind({}));
  return call.vm.heap().list(items_of(call.vm.heap(), call.self));
}

Value items_filter(Call& call) {
  static_cast<void>(call.bind({}));
  Heap& heap = call.vm.heap();
  std::vector<Value> items;
  if (call.self.is_undefined()) return heap.generator(std::move(items));
  if (call.self.dict() == nullptr) fail("Can only get item pairs from a mapping.");
  for (const auto& [key, value] : call.self.dict()->entries) items.push_back(heap.tuple({key, value}));
  return heap.generator(std::move(items));
}

Value batch_filter(Call& call) {
  const auto arguments = call.bind({"linecount", "fill_with"}, 1);
  Heap& heap = call.vm.heap();
  const std::int64_t size = to_index(*arguments[0], "batch's size");
  if (size < 1 || size > kMaxRange) fail("batch's size must be from 1 to {}", kMaxRange);
  std::vector<Value> batches;
  std::vector<Value> batch;
  const auto flush = [&] { batches.push_back(heap.list(std::exchange(batch, {}))); };
  for (const Value& item : items_of(heap, call.self)) {
    if (static_cast<std::int64_t>(batch.size()) == size) flush();
    batch.push_back(item);
  }
  if (!batch.empty()) {
    if (arguments[1] != nullptr && !arguments[1]->is_none())
      batch.resize(static_cast<std::size_t>(size), *arguments[1]);
    flush();
  }
  return heap.generator(std::move(batches));
}

Value slice_filter(Call& call) {
  const auto arguments = call.bind({"slices", "fill_with"}, 1);
  Heap& heap = call.vm.heap();
  const std::vector<Value> items = items_of(heap, call.self);
  const std::int64_t slices = to_index(*arguments[0], "slice's number");
  if (slices < 1 || slices > kMaxRange) fail("slice's number must be from 1 to {}", kMaxRange);
  const std::int64_t size = static_cast<std::int64_t>(items.size()) / slices;
  const std::int64_t longer = static_cast<std::int64_t>(items.size()) % slices;
  std::vector<Value> result;
  auto from = items.begin();
  for (std::int64_t i = 0; i < slices; ++i) {
    const auto to = from + size + (i < longer ? 1 : 0);
    std::vector<Value> part(from, to);
    if (arguments[1] != nullptr && !arguments[1]->is_none() && i >= longer) part.push_back(*arguments[1]);
    result.push_back(heap.list(std::move(part)));
    from = to;
  }
  return heap.generator(std::move(result));
}

// A group is the tuple (key, items).
Value groupby_filter(Call& call) {
  const auto arguments = call.bind({"attribute", "default", "case_sensitive"}, 1);
  Heap& heap = call.vm.heap();
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items_of(heap, call.self)) {
    Value key = key_of(call.vm, item, *arguments[0], is_set(arguments[2]));
    if (key.is_undefined() && arguments[1] != nullptr) key = *arguments[1];
    keyed.emplace_back(std::move(key), item);
  }
  sort_by_key(heap, keyed, false);
  std::vector<Value> groups;
  for (std::size_t from = 0; from < keyed.size();) {
    std::vector<Value> members;
    std::size_t to = from;
    for (; to < keyed.size() && compare(heap, Comparison::kEqual, keyed[from].first, keyed[to].first); ++to) {
      members.push_back(keyed[to].second);
    }
    Value key = call.vm.attribute_path(members[0], *arguments[0]);
    if (key.is_undefined() && arguments[1] != nullptr) key = *arguments[1];
    groups.push_back(heap.tuple({std::move(key), heap.list(std::move(members))}));
    from = to;
  }
  return heap.list(std::move(groups));
}

constexpr NamedBuiltin kFilters[] = {
    {"batch", batch_filter}, {"dictsort", dictsort_filter}, {"first", first_filter},     {"groupby", groupby_filter},
    {"items", items_filter}, {"join", join_filter},         {"last", last_filter},       {"list", list_filter},
    {"max", max_filter},     {"min", min_filter},           {"reverse", reverse_filter}, {"slice", slice_filter},
    {"sort", sort_filter},   {"sum", sum_filter},           {"unique", unique_filter},
};

}  // namespace

Builtin find_sequence_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const auto& f) { return f.name == name; });
  return found == std::end(kFilters) ? nullptr : found->builtin;
}

}  // namespace steadfast::jinja
