// Typed fields with sentences that say what was expected and what came.
#include "server/field_reader.h"

#include <cmath>

namespace steadfast {

const char* kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it a double names no single integer
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (std::abs(number) > kExact || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

const Json* FieldReader::find(const char* key) const {
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

std::optional<bool> FieldReader::boolean(const char* key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) {
    fail(key, "'{}' must be true or false, not {}", name(key), kind_of(*value));
    return std::nullopt;
  }
  return value->get<bool>();
}

std::optional<double> FieldReader::number(const char* key, double least, double most) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    fail(key, "'{}' must be a number, not {}", name(key), kind_of(*value));
    return std::nullopt;
  }
  const double number = value->get<double>();
  if (!(number >= least && number <= most)) {
    fail(key, "'{}' must be between {} and {}", name(key), least, most);
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> FieldReader::integer(const char* key, std::int64_t least, std::int64_t most) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    fail(key, "'{}' must be an integer, not {}", name(key), kind_of(*value));
    return std::nullopt;
  }
  const auto number = whole_number(*value);
  if (!number || *number < least || *number > most) {
    fail(key, "'{}' must be an integer between {} and {}", name(key), least, most);
    return std::nullopt;
  }
  return number;
}

std::optional<std::string> FieldReader::string(const char* key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    fail(key, "'{}' must be a string, not {}", name(key), kind_of(*value));
    return std::nullopt;
  }
  return value->get<std::string>();
}

const Json* FieldReader::object(const char* key) {
  const Json* value = find(key);
  if (value == nullptr || value->is_object()) return value;
  fail(key, "'{}' must be an object, not {}", name(key), kind_of(*value));
  return nullptr;
}

const Json* FieldReader::array(const char* key) {
  const Json* value = find(key);
  if (value == nullptr || value->is_array()) return value;
  fail(key, "'{}' must be a list, not {}", name(key), kind_of(*value));
  return nullptr;
}

void FieldReader::refuse(const char* key, const char* sentence, const Json& harmless) {
  const Json* value = find(key);
  if (value == nullptr || *value == harmless) return;
  fail(key, "'{}' is not supported: {}", name(key), sentence);
}

}  // namespace steadfast
