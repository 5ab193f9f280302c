// Conversions of GGUF metadata values: none changes a value; what does not fit gives nothing.
#include <limits>

#include "formats/gguf.h"

namespace steadfast {

std::optional<std::int64_t> GgufValue::as_int() const {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value)) {
    if (*number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(*number);
    }
  }
  return std::nullopt;
}

std::optional<double> GgufValue::as_float() const {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<bool> GgufValue::as_bool() const {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  return std::nullopt;
}

std::optional<std::string_view> GgufValue::as_string() const {
  if (const auto* text = std::get_if<std::string_view>(&value)) return *text;
  return std::nullopt;
}

const GgufArray* GgufValue::as_array() const {
  const auto* array = std::get_if<std::shared_ptr<const GgufArray>>(&value);
  return array == nullptr ? nullptr : array->get();
}

}  // namespace steadfast
