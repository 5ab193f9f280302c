// Filters on numbers: find_number_filter.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "text/jinja/builtins.h"
#include "text/jinja/numbers.h"

namespace steadfast::jinja {
namespace {

Value int_filter(Call& call) {
  const auto arguments = call.bind({"default", "base"});
  const Value fallback = arguments[0] == nullptr ? Value::integer(0) : *arguments[0];
  const Value& value = call.self;
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_integral()) return Value::integer(value.as_int());
  if (value.is_text()) {
    const std::int64_t base = arguments[1] == nullptr ? 10 : to_index(*arguments[1], "int's base");
    if (base != 0 && (base < 2 || base > 36)) fail("int() base must be >= 2 and <= 36, or 0");
    if (const std::optional<Int> whole = parse_int(value.as_text(), static_cast<int>(base)))
      return Value::integer(*whole);
  }
  const std::optional<double> number = value.is_float()  ? value.as_float()
                                       : value.is_text() ? parse_float(value.as_text())
                                                         : std::nullopt;
  if (!number) return fallback;
  if (std::isinf(*number) && value.is_float()) fail("cannot convert float infinity to integer");
  const std::optional<Int> whole = int_of(*number);
  if (!whole && std::isfinite(*number)) fail("an integer has more than 127 bits");
  return whole ? Value::integer(*whole) : fallback;
}

Value float_filter(Call& call) {
  const auto arguments = call.bind({"default"});
  const Value& value = call.self;
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_number()) return Value::real(value.as_float());
  const std::optional<double> number = value.is_text() ? parse_float(value.as_text()) : std::nullopt;
  if (number) return Value::real(*number);
  return arguments[0] == nullptr ? Value::real(0.0) : *arguments[0];
}

Value abs_filter(Call& call) {
  static_cast<void>(call.bind({}));
  const Value& value = call.self;
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_float()) return Value::real(std::fabs(value.as_float()));
  if (!value.is_integral()) fail("bad operand type for abs(): '{}'", value.type_name());
  return value.as_int() < 0 ? negative(value) : Value::integer(value.as_int());
}

Value round_filter(Call& call) {
  const auto arguments = call.bind({"precision", "method"});
  const Value& value = call.self;
  if (value.is_undefined()) fail_undefined(value);
  const Value precision = arguments[0] == nullptr ? Value::integer(0) : *arguments[0];
  const std::string method = arguments[1] == nullptr   ? "common"
                             : arguments[1]->is_text() ? arguments[1]->as_text()
                                                       : "";
  if (method != "common" && method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  if (!value.is_number()) fail("type {} doesn't define __round__ method", value.type_name());
  if (method == "common") return round_number(value, to_index(precision, "round's precision"));
  const Value unit = arithmetic(Operator::kPower, Value::integer(10), precision);
  const Value scaled = arithmetic(Operator::kMultiply, value, unit);
  Value whole = scaled;
  if (scaled.is_float()) {
    const double number = method == "ceil" ? std::ceil(scaled.as_float()) : std::floor(scaled.as_float());
    const std::optional<Int> integer = int_of(number);
    if (!integer) fail("cannot round {} to an integer", repr_of(scaled.as_float()));
    whole = Value::integer(*integer);
  }
  return arithmetic(Operator::kDivide, whole, unit);
}

constexpr NamedBuiltin kFilters[] = {
    {"abs", abs_filter}, {"float", float_filter}, {"int", int_filter}, {"round", round_filter}};

}  // namespace

Builtin find_number_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const auto& f) { return f.name == name; });
  return found == std::end(kFilters) ? nullptr : found->builtin;
}

}  // namespace steadfast::jinja
