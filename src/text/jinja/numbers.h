// Python's numbers: printing, parsing, floor division, power, rounding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/operators.h"

namespace steadfast::jinja {

std::string repr_of(Int value);
std::string repr_of(double value);  // the shortest text that reads back, as Python's repr
// Python's int(text, base) and float(text); nothing where Python raises ValueError.
std::optional<Int> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);
// Truncates; nothing for infinities, NaN and what does not fit.
std::optional<Int> int_of(double value);

Value arithmetic(Operator op, const Value& left, const Value& right);  // both numbers
// Python's round(value, digits): ties go to even, on the exact binary value.
Value round_number(const Value& value, std::int64_t digits);
// -1, 0, 1; 2 where one is NaN. Integers and floats are compared exactly.
int compare_numbers(const Value& left, const Value& right);

}  // namespace steadfast::jinja
