// Literals of the template language: what a quoted string and a number mean.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace steadfast::jinja {

// The text between the quotes with Python's escapes (\n, \x41, \u00e9, \U0001F600, octal, ...) replaced.
std::string unescape(std::string_view body, int line);

struct NumberLiteral {
  Value value;
  std::size_t bytes;
};
// The number at the start of `text`, which starts with a digit: 12, 1_000, 0x1f, 0b1, 0o7, 1.5, 2e-3.
// After a dot (`x.0.1`) a number is always an integer.
NumberLiteral read_number(std::string_view text, bool is_after_dot, int line);

}  // namespace steadfast::jinja
