// The tests of `is`: find_test.
#include <algorithm>
#include <iterator>

#include "text/jinja/builtins.h"
#include "text/jinja/printing.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

template <bool (*predicate)(const Value&)>
Value simple(Call& call) {
  static_cast<void>(call.bind({}));
  return Value::boolean(predicate(call.self));
}

template <Comparison comparison>
Value comparing(Call& call) {
  const auto arguments = call.bind({"other"}, 1);
  return Value::boolean(compare(call.vm.heap(), comparison, call.self, *arguments[0]));
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_boolean(const Value& v) { return v.is_bool(); }
bool is_true(const Value& v) { return v.is_bool() && v.as_bool(); }
bool is_false(const Value& v) { return v.is_bool() && !v.as_bool(); }
bool is_integer(const Value& v) { return v.is_int(); }
bool is_float(const Value& v) { return v.is_float(); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_string(const Value& v) { return v.is_text(); }
bool is_mapping(const Value& v) { return v.dict() != nullptr; }
bool is_lower(const Value& v) { return is_class(to_text(v), TextClass::kLower); }
bool is_upper(const Value& v) { return is_class(to_text(v), TextClass::kUpper); }
bool is_escaped(const Value& v) { return v.is_safe_text(); }

bool is_sequence(const Value& v) {
  // Undefined has a length but refuses subscripts only when they are used.
  return v.is_undefined() || v.is_text() || v.is_list() || v.is_tuple() || v.dict() != nullptr ||
         v.is_object(ObjectType::kRange);
}

bool is_callable(const Value& v) {
  if (v.is_undefined()) return true;  // calling it is what fails
  return v.is_object(ObjectType::kFunction) || v.is_object(ObjectType::kMacro) || v.is_object(ObjectType::kLoop) ||
         v.is_object(ObjectType::kJoiner);
}

bool has_remainder(Call& call, const Value& divisor, Int wanted) {
  const Value rest = apply(call.vm.heap(), Operator::kModulo, call.self, divisor);
  return equal(rest, Value::integer(wanted));
}

Value odd(Call& call) {
  static_cast<void>(call.bind({}));
  return Value::boolean(has_remainder(call, Value::integer(2), 1));
}

Value even(Call& call) {
  static_cast<void>(call.bind({}));
  return Value::boolean(has_remainder(call, Value::integer(2), 0));
}

Value divisible_by(Call& call) {
  const auto arguments = call.bind({"num"}, 1);
  return Value::boolean(has_remainder(call, *arguments[0], 0));
}

Value same_as(Call& call) {
  const auto arguments = call.bind({"other"}, 1);
  return Value::boolean(call.self.same_as(*arguments[0]));
}

Value in(Call& call) {
  const auto arguments = call.bind({"seq"}, 1);
  return Value::boolean(contains(call.vm.heap(), *arguments[0], call.self));
}

Value is_filter(Call& call) {
  static_cast<void>(call.bind({}));
  return Value::boolean(call.self.is_text() && find_filter(call.self.as_text()) != nullptr);
}

Value is_test(Call& call) {
  static_cast<void>(call.bind({}));
  return Value::boolean(call.self.is_text() && find_test(call.self.as_text()) != nullptr);
}

constexpr NamedBuiltin kTests[] = {
    {"!=", comparing<Comparison::kNotEqual>},
    {"<", comparing<Comparison::kLess>},
    {"<=", comparing<Comparison::kLessEqual>},
    {"==", comparing<Comparison::kEqual>},
    {">", comparing<Comparison::kGreater>},
    {">=", comparing<Comparison::kGreaterEqual>},
    {"boolean", simple<is_boolean>},
    {"callable", simple<is_callable>},
    {"defined", simple<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", comparing<Comparison::kEqual>},
    {"equalto", comparing<Comparison::kEqual>},
    {"escaped", simple<is_escaped>},
    {"even", even},
    {"false", simple<is_false>},
    {"filter", is_filter},
    {"float", simple<is_float>},
    {"ge", comparing<Comparison::kGreaterEqual>},
    {"greaterthan", comparing<Comparison::kGreater>},
    {"gt", comparing<Comparison::kGreater>},
    {"in", in},
    {"integer", simple<is_integer>},
    {"iterable", simple<is_iterable>},
    {"le", comparing<Comparison::kLessEqual>},
    {"lessthan", comparing<Comparison::kLess>},
    {"lower", simple<is_lower>},
    {"lt", comparing<Comparison::kLess>},
    {"mapping", simple<is_mapping>},
    {"ne", comparing<Comparison::kNotEqual>},
    {"none", simple<is_none>},
    {"number", simple<is_number>},
    {"odd", odd},
    {"sameas", same_as},
    {"sequence", simple<is_sequence>},
    {"string", simple<is_string>},
    {"test", is_test},
    {"true", simple<is_true>},
    {"undefined", simple<is_undefined>},
    {"upper", simple<is_upper>},
};

}  // namespace

Builtin find_test(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests), [&](const auto& t) { return t.name == name; });
  return found == std::end(kTests) ? nullptr : found->builtin;
}

}  // namespace steadfast::jinja
