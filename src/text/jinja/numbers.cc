// Integers are exact up to 127 bits; floats follow CPython step by step where C++ differs (divmod, round, repr).
#include "text/jinja/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

constexpr double kTwoTo126 = 0x1p126;

[[noreturn]] void fail_too_large() { fail("an integer has more than 127 bits"); }

Int floor_divide(Int a, Int b) {
  if (b == -1 && a == std::numeric_limits<Int>::min()) fail_too_large();
  const Int quotient = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

Int modulo(Int a, Int b) {
  if (b == -1) return 0;
  const Int rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value integer_power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) fail("zero cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Int result = 1;
  while (exponent != 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_too_large();
    exponent >>= 1;
    if (exponent != 0 && __builtin_mul_overflow(base, base, &base)) fail_too_large();
  }
  return Value::integer(result);
}

Value integer_arithmetic(Operator op, Int a, Int b) {
  Int result = 0;
  bool too_large = false;
  switch (op) {
    case Operator::kAdd:
      too_large = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      too_large = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      too_large = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kPower:
      return integer_power(a, b);
    case Operator::kDivide:
      if (b == 0) fail("division by zero");
      return Value::real(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case Operator::kFloorDivide:
      if (b == 0) fail("integer division or modulo by zero");
      return Value::integer(floor_divide(a, b));
    case Operator::kModulo:
      if (b == 0) fail("integer modulo by zero");
      return Value::integer(modulo(a, b));
  }
  if (too_large) fail_too_large();
  return Value::integer(result);
}

// Python's divmod of floats: the remainder has the divisor's sign.
Value float_division(Operator op, double a, double b) {
  if (b == 0.0) fail("float {} by zero", op == Operator::kModulo ? "modulo" : "floor division");
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0.0) {
    if ((b < 0) != (rest < 0)) {
      rest += b;
      quotient -= 1.0;
    }
  } else {
    rest = std::copysign(0.0, b);
  }
  if (op == Operator::kModulo) return Value::real(rest);
  if (quotient == 0.0) return Value::real(std::copysign(0.0, a / b));
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1.0;
  return Value::real(floored);
}

Value float_power(double a, double b) {
  if (a == 0.0 && b < 0.0) fail("zero cannot be raised to a negative power");
  if (a < 0.0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    fail("a negative number cannot be raised to a fractional power here");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("the result of ** is too large");
  return Value::real(result);
}

// `text` without Python's allowed underscores; nothing where one is not between two digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string digits;
  const auto is_digit = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) {
      return std::nullopt;
    }
  }
  return digits;
}

// Takes "0x", "0o", "0b" off the front where `base` allows it; base 0 is settled.
std::string_view take_prefix(std::string_view digits, int& base) {
  int named = 0;
  if (digits.size() > 1 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  }
  if (base == 0) {
    base = named != 0 ? named : 10;
    if (named == 0 && digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of("0_") != digits.npos) return {};
  }
  if (named != base) return digits;
  digits.remove_prefix(2);
  if (!digits.empty() && digits[0] == '_') digits.remove_prefix(1);
  return digits;
}

// The number printed exactly with so many digits (ties to even) and read back.
Value reread(double number, std::chars_format format, int digits) {
  char buffer[1024];
  const auto written = std::to_chars(buffer, buffer + sizeof(buffer), number, format, digits);
  double value = 0;
  std::from_chars(buffer, written.ptr, value);
  return Value::real(value);
}

}  // namespace

std::string repr_of(Int value) { return fmt::format("{}", value); }

std::string repr_of(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto written = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(written.ptr - buffer));
  const std::size_t mark = text.find('e');
  int exponent = 0;
  const char* first = text.data() + mark + 1;
  std::from_chars(*first == '+' ? first + 1 : first, text.data() + text.size(), exponent);
  const bool is_negative = text[0] == '-';
  std::string digits;
  for (const char c : text.substr(0, mark)) {
    if (c != '.' && c != '-') digits += c;
  }
  std::string result = is_negative ? "-" : "";
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    result += digits[0];
    if (count > 1) result += "." + digits.substr(1);
    return result + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return result + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return result + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  return result + digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<std::size_t>(exponent) + 1);
}

std::optional<Int> parse_int(std::string_view text, int base) {
  std::string_view digits = strip(text, std::nullopt, Sides::kBoth);
  const bool is_negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  digits = take_prefix(digits, base);
  const std::optional<std::string> plain = without_underscores(digits);
  if (!plain || plain->empty()) return std::nullopt;
  Int value = 0;
  for (const char c : *plain) {
    const int digit = c >= '0' && c <= '9'                               ? c - '0'
                      : std::isalpha(static_cast<unsigned char>(c)) != 0 ? (c | 0x20) - 'a' + 10
                                                                         : 99;
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, Int{base}, &value) || __builtin_add_overflow(value, Int{digit}, &value)) {
      fail_too_large();
    }
  }
  return is_negative ? -value : value;
}

std::optional<double> parse_float(std::string_view text) {
  const std::optional<std::string> plain = without_underscores(strip(text, std::nullopt, Sides::kBoth));
  if (!plain || plain->empty()) return std::nullopt;
  const char* first = plain->data();
  const char* last = first + plain->size();
  const bool is_negative = *first == '-';
  if (*first == '-' || *first == '+') ++first;
  if (first == last || *first == '-' || *first == '+') return std::nullopt;
  if (lower(std::string_view(first, static_cast<std::size_t>(last - first))).starts_with("nan(")) return std::nullopt;
  double value = 0;
  const auto read = std::from_chars(first, last, value);
  if (read.ptr != last) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) value = std::strtod(first, nullptr);  // 0 or infinity, as Python
  return is_negative ? -value : value;
}

std::optional<Int> int_of(double value) {
  if (!(std::fabs(value) < kTwoTo126)) return std::nullopt;
  return static_cast<Int>(value);
}

Value arithmetic(Operator op, const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) return integer_arithmetic(op, left.as_int(), right.as_int());
  const double a = left.as_float();
  const double b = right.as_float();
  switch (op) {
    case Operator::kAdd:
      return Value::real(a + b);
    case Operator::kSubtract:
      return Value::real(a - b);
    case Operator::kMultiply:
      return Value::real(a * b);
    case Operator::kPower:
      return float_power(a, b);
    case Operator::kDivide:
      if (b == 0.0) fail("float division by zero");
      return Value::real(a / b);
    case Operator::kFloorDivide:
    case Operator::kModulo:
      break;
  }
  return float_division(op, a, b);
}

Value round_number(const Value& value, std::int64_t digits) {
  if (value.is_integral()) {
    if (digits >= 0) return Value::integer(value.as_int());
    if (digits < -38) return Value::integer(0);
    const Int unit = integer_power(10, -digits).as_int();
    const Int base = value.as_int();
    const Int rest = modulo(base, unit);
    const Int down = base - rest;
    const bool is_up = rest > unit - rest || (rest == unit - rest && modulo(floor_divide(base, unit), 2) == 1);
    return integer_arithmetic(Operator::kAdd, down, is_up ? unit : 0);
  }
  const double number = value.as_float();
  if (!std::isfinite(number) || digits > 340) return value;
  if (digits < -310) return Value::real(std::copysign(0.0, number));
  if (digits >= 0) return reread(number, std::chars_format::fixed, static_cast<int>(digits));
  // Fewer digits than the integer part has: the integer part is exact in decimal, so it is rounded as text.
  const int before = number == 0.0 ? 1 : static_cast<int>(std::floor(std::log10(std::fabs(number)))) + 1;
  const std::int64_t kept = before + digits;
  if (kept < 0) return Value::real(std::copysign(0.0, number));
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  if (kept == 0) return Value::real(std::copysign(std::fabs(number) > unit / 2 ? unit : 0.0, number));
  return reread(number, std::chars_format::scientific, static_cast<int>(kept - 1));
}

int compare_numbers(const Value& left, const Value& right) {
  const auto three_way = [](const auto& a, const auto& b) { return a < b ? -1 : (b < a ? 1 : 0); };
  if (left.is_integral() && right.is_integral()) return three_way(left.as_int(), right.as_int());
  if (left.is_float() && right.is_float()) {
    const double a = left.as_float();
    const double b = right.as_float();
    return std::isnan(a) || std::isnan(b) ? 2 : three_way(a, b);
  }
  if (left.is_float()) {
    const int reversed = compare_numbers(right, left);
    return reversed == 2 ? 2 : -reversed;
  }
  const double b = right.as_float();
  if (std::isnan(b)) return 2;
  if (!(std::fabs(b) < kTwoTo126)) return b > 0 ? -1 : 1;
  const Int whole = static_cast<Int>(std::floor(b));
  if (left.as_int() != whole) return three_way(left.as_int(), whole);
  return b > std::floor(b) ? -1 : 0;
}

}  // namespace steadfast::jinja
