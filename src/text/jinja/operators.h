// Python's operators on values: arithmetic, comparison, membership. Type errors read as Python's do.
#pragma once

#include <cstdint>
#include <string_view>

#include "text/jinja/heap.h"

namespace steadfast::jinja {

enum class Operator : std::uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Comparison : std::uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

Value apply(Heap& heap, Operator op, const Value& left, const Value& right);
Value negative(const Value& value);
Value positive(const Value& value);

bool equal(const Value& left, const Value& right);
// Python's `left < right` and its relatives (kLess to kGreaterEqual).
bool ordered(Comparison comparison, const Value& left, const Value& right);
bool compare(Heap& heap, Comparison comparison, const Value& left, const Value& right);
bool contains(Heap& heap, const Value& container, const Value& item);

// An error where Python could not use the value as a key of a dict.
void check_hashable(const Value& key);
// What Python's iteration over the value gives; reading a generator uses it up. Not iterable: an error.
std::vector<Value> items_of(Heap& heap, const Value& value);
bool is_iterable(const Value& value);
// Python's len(); -1 where the value has none.
std::int64_t length_of(const Value& value);
// Text for HTML, as Jinja's `escape`.
std::string escape_html(std::string_view text);
// An integer that Python's index arguments take, clamped to 64 bits; anything else is an error naming `what`.
std::int64_t to_index(const Value& value, std::string_view what);
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace steadfast::jinja
