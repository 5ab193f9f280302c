// Dispatch on the types of both operands. Work that grows with the operands is charged to the heap's steps.
#include "text/jinja/operators.h"

#include <algorithm>
#include <limits>

#include "text/jinja/format.h"
#include "text/jinja/numbers.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

constexpr std::string_view kOperatorNames[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
constexpr std::string_view kComparisonNames[] = {"==", "!=", "<", "<=", ">", ">=", "in", "not in"};

[[noreturn]] void fail_operands(Operator op, const Value& left, const Value& right) {
  fail("unsupported operand type(s) for {}: '{}' and '{}'", kOperatorNames[static_cast<std::size_t>(op)],
       left.type_name(), right.type_name());
}

Value add(Heap& heap, const Value& left, const Value& right) {
  if (left.is_text() && right.is_text()) {
    Heap::check_text_size(left.as_text().size() + right.as_text().size());
    if (left.is_safe_text() == right.is_safe_text()) return heap.text_like(left, left.as_text() + right.as_text());
    const auto escaped = [](const Value& v) { return v.is_safe_text() ? v.as_text() : escape_html(v.as_text()); };
    return heap.safe_text(escaped(left) + escaped(right));
  }
  const bool are_lists = left.is_list() && right.is_list();
  if (are_lists || (left.is_tuple() && right.is_tuple())) {
    std::vector<Value> items = left.sequence()->items;
    heap.spend(static_cast<std::int64_t>(items.size() / 4));
    items.insert(items.end(), right.sequence()->items.begin(), right.sequence()->items.end());
    return heap.sequence(left.sequence()->type, std::move(items));
  }
  if (left.is_text()) fail("can only concatenate str (not \"{}\") to str", right.type_name());
  fail_operands(Operator::kAdd, left, right);
}

// A string, list or tuple, `count` times.
Value repeat(Heap& heap, const Value& value, const Value& count) {
  const std::int64_t times = std::max<std::int64_t>(0, to_index(count, "the number of repetitions"));
  if (value.is_text()) {
    const std::string& text = value.as_text();
    if (text.empty() || times == 0) return heap.text_like(value, "");
    Heap::check_text_size(static_cast<std::uint64_t>(times) > kMaxTextBytes
                              ? kMaxTextBytes + 1
                              : text.size() * static_cast<std::size_t>(times));
    std::string result;
    result.reserve(text.size() * static_cast<std::size_t>(times));
    for (std::int64_t i = 0; i < times; ++i) result += text;
    return heap.text_like(value, std::move(result));
  }
  const std::vector<Value>& items = value.sequence()->items;
  std::vector<Value> result;
  if (!items.empty() && times > static_cast<std::int64_t>(kMaxMemoryBytes / sizeof(Value) / items.size())) {
    fail("repeating a list {} times needs too much memory", times);
  }
  result.reserve(items.size() * static_cast<std::size_t>(times));
  for (std::int64_t i = 0; i < times && !items.empty(); ++i) result.insert(result.end(), items.begin(), items.end());
  return heap.sequence(value.sequence()->type, std::move(result));
}

bool is_repeatable(const Value& value) { return value.is_text() || value.is_list() || value.is_tuple(); }

// Dict keys and items behave as sets there; two ranges are equal when they give the same numbers.
bool equal_sequences(const Sequence& left, const Sequence& right) {
  if (&left == &right) return true;
  if (left.type != right.type || left.items.size() != right.items.size()) return false;
  if (left.type == SequenceType::kGenerator || left.type == SequenceType::kDictValues) return false;
  if (left.type == SequenceType::kList || left.type == SequenceType::kTuple) {
    return std::equal(left.items.begin(), left.items.end(), right.items.begin(), equal);
  }
  return std::all_of(left.items.begin(), left.items.end(), [&](const Value& item) {
    return std::any_of(right.items.begin(), right.items.end(), [&](const Value& other) { return equal(item, other); });
  });
}

bool equal_dicts(const Dict& left, const Dict& right) {
  if (&left == &right) return true;
  if (left.entries.size() != right.entries.size()) return false;
  return std::all_of(left.entries.begin(), left.entries.end(), [&](const auto& entry) {
    const Value* found = right.find(entry.first);
    return found != nullptr && equal(entry.second, *found);
  });
}

bool equal_objects(const Object& left, const Object& right) {
  if (&left == &right) return true;
  if (left.type != ObjectType::kRange || right.type != ObjectType::kRange) return false;
  const auto& a = static_cast<const Range&>(left);
  const auto& b = static_cast<const Range&>(right);
  return a.size() == b.size() && (a.size() == 0 || (a.start == b.start && (a.size() == 1 || a.step == b.step)));
}

void spend_comparison(Heap& heap, const Value& left, const Value& right) {
  heap.spend(static_cast<std::int64_t>(std::min(left.extent().weight, right.extent().weight)));
}

bool satisfies(Comparison comparison, int order) {
  if (order == 2) return false;
  switch (comparison) {
    case Comparison::kLess:
      return order < 0;
    case Comparison::kLessEqual:
      return order <= 0;
    case Comparison::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

}  // namespace

void fail_undefined(const Value& value) { throw Error(0, value.undefined_reason()); }

Value apply(Heap& heap, Operator op, const Value& left, const Value& right) {
  if (left.is_text() && op == Operator::kModulo) return percent_format(heap, left, right);
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  if (left.is_number() && right.is_number()) return arithmetic(op, left, right);
  if (op == Operator::kAdd) return add(heap, left, right);
  if (op == Operator::kMultiply) {
    if (is_repeatable(left) && right.is_integral()) return repeat(heap, left, right);
    if (is_repeatable(right) && left.is_integral()) return repeat(heap, right, left);
  }
  fail_operands(op, left, right);
}

Value negative(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_float()) return Value::real(-value.as_float());
  if (value.is_integral()) return arithmetic(Operator::kSubtract, Value::integer(0), value);
  fail("bad operand type for unary -: '{}'", value.type_name());
}

Value positive(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_float()) return value;
  if (value.is_integral()) return Value::integer(value.as_int());
  fail("bad operand type for unary +: '{}'", value.type_name());
}

bool equal(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.is_text() && right.is_text()) return left.as_text() == right.as_text();
  if (left.is_undefined() || left.is_none()) return left.type_name() == right.type_name();
  if (left.sequence() != nullptr && right.sequence() != nullptr) {
    return equal_sequences(*left.sequence(), *right.sequence());
  }
  if (left.dict() != nullptr && right.dict() != nullptr) return equal_dicts(*left.dict(), *right.dict());
  return left.object() != nullptr && right.object() != nullptr && equal_objects(*left.object(), *right.object());
}

bool ordered(Comparison comparison, const Value& left, const Value& right) {
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  if (left.is_number() && right.is_number()) return satisfies(comparison, compare_numbers(left, right));
  if (left.is_text() && right.is_text()) {
    const int order = left.as_text().compare(right.as_text());  // bytes of UTF-8 sort as code points do
    return satisfies(comparison, order < 0 ? -1 : (order > 0 ? 1 : 0));
  }
  if ((left.is_list() && right.is_list()) || (left.is_tuple() && right.is_tuple())) {
    const auto& a = left.sequence()->items;
    const auto& b = right.sequence()->items;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!equal(a[i], b[i])) return ordered(comparison, a[i], b[i]);
    }
    return satisfies(comparison, a.size() < b.size() ? -1 : (a.size() > b.size() ? 1 : 0));
  }
  fail("'{}' not supported between instances of '{}' and '{}'", kComparisonNames[static_cast<std::size_t>(comparison)],
       left.type_name(), right.type_name());
}

bool compare(Heap& heap, Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::kEqual:
    case Comparison::kNotEqual:
      spend_comparison(heap, left, right);
      return equal(left, right) == (comparison == Comparison::kEqual);
    case Comparison::kIn:
      return contains(heap, right, left);
    case Comparison::kNotIn:
      return !contains(heap, right, left);
    default:
      spend_comparison(heap, left, right);
      return ordered(comparison, left, right);
  }
}

bool contains(Heap& heap, const Value& container, const Value& item) {
  if (container.is_text()) {
    if (!item.is_text()) fail("'in <string>' requires string as left operand, not {}", item.type_name());
    heap.spend_text(container.as_text().size() + item.as_text().size());
    return find_first(container.as_text(), item.as_text()) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    check_hashable(item);
    heap.spend(static_cast<std::int64_t>((item.is_text() ? 1 : dict->entries.size()) * item.extent().weight));
    return dict->find(item) != nullptr;
  }
  if (!is_iterable(container)) fail("argument of type '{}' is not iterable", container.type_name());
  const auto is_same = [&](const Value& other) {
    spend_comparison(heap, other, item);
    return equal(other, item);
  };
  if (const Sequence* s = container.sequence(); s != nullptr && s->type != SequenceType::kGenerator) {
    return std::any_of(s->items.begin(), s->items.end(), is_same);
  }
  const std::vector<Value> items = items_of(heap, container);
  return std::any_of(items.begin(), items.end(), is_same);
}

void check_hashable(const Value& key) {
  if (key.is_list() || key.dict() != nullptr || key.is_sequence(SequenceType::kDictKeys) ||
      key.is_sequence(SequenceType::kDictItems)) {
    fail("unhashable type: '{}'", key.type_name());
  }
  if (key.is_tuple()) {
    for (const Value& item : key.sequence()->items) check_hashable(item);
  }
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_text() || value.dict() != nullptr || value.sequence() != nullptr ||
         value.is_object(ObjectType::kRange) || value.is_object(ObjectType::kLoop);
}

std::vector<Value> items_of(Heap& heap, const Value& value) {
  std::vector<Value> items;
  if (value.is_undefined()) return items;
  if (Sequence* s = value.sequence()) {
    heap.spend(static_cast<std::int64_t>(s->items.size() / 4));
    if (s->type != SequenceType::kGenerator) return s->items;
    items.assign(s->items.begin() + static_cast<std::ptrdiff_t>(s->next), s->items.end());
    s->next = s->items.size();
  } else if (value.is_text()) {
    const std::string& text = value.as_text();
    heap.spend(static_cast<std::int64_t>(text.size()));
    for (const std::string_view c : characters(text)) items.push_back(heap.text(std::string(c)));
  } else if (const Dict* d = value.dict()) {
    heap.spend(static_cast<std::int64_t>(d->entries.size() / 4));
    for (const auto& [key, unused] : d->entries) items.push_back(key);
  } else if (value.is_object(ObjectType::kRange)) {
    const auto& range = static_cast<const Range&>(*value.object());
    heap.spend(range.size() / 4);
    for (std::int64_t i = 0; i < range.size(); ++i) items.push_back(range.at(i));
  } else {
    fail("'{}' object is not iterable", value.type_name());
  }
  return items;
}

std::int64_t length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_text()) return static_cast<std::int64_t>(length(value.as_text()));
  if (const Dict* d = value.dict()) return static_cast<std::int64_t>(d->entries.size());
  if (const Sequence* s = value.sequence()) {
    return s->type == SequenceType::kGenerator ? -1 : static_cast<std::int64_t>(s->items.size());
  }
  if (value.is_object(ObjectType::kRange)) return static_cast<const Range*>(value.object())->size();
  if (value.is_object(ObjectType::kLoop)) return static_cast<Loop*>(value.object())->length();
  return -1;
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::int64_t to_index(const Value& value, std::string_view what) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_integral()) fail("{} must be an integer, not '{}'", what, value.type_name());
  constexpr Int kLow = std::numeric_limits<std::int64_t>::min() / 4;
  constexpr Int kHigh = std::numeric_limits<std::int64_t>::max() / 4;
  return static_cast<std::int64_t>(std::clamp(value.as_int(), kLow, kHigh));
}

}  // namespace steadfast::jinja
