// Reads the typed fields of one JSON object, keeping the first error. null counts as absent, as OpenAI's clients mean
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/api_error.h"

namespace steadfast {

class FieldReader {
 public:
  // `object` must be a JSON object and outlive the reader; `prefix` ("messages[0].") leads the names in errors.
  explicit FieldReader(const Json& object, std::string prefix = "") : object_(object), prefix_(std::move(prefix)) {}

  const Json* find(const char* key) const;
  std::optional<bool> boolean(const char* key);
  std::optional<double> number(const char* key, double least, double most);
  std::optional<std::int64_t> integer(const char* key, std::int64_t least, std::int64_t most);
  std::optional<std::string> string(const char* key);
  const Json* object(const char* key);
  const Json* array(const char* key);

  // The field is known and not supported: any value but null, or but `harmless`, is an error with this sentence.
  void refuse(const char* key, const char* sentence, const Json& harmless = nullptr);

  template <typename... Args>
  void fail(const char* key, fmt::format_string<Args...> format, Args&&... args) {
    if (!error_) error_ = bad_field(name(key), format, std::forward<Args>(args)...);
  }
  void fail(ApiError error) {
    if (!error_) error_ = std::move(error);
  }

  bool ok() const { return !error_.has_value(); }
  const std::optional<ApiError>& error() const { return error_; }
  std::string name(const char* key) const { return prefix_ + key; }

 private:
  const Json& object_;
  std::string prefix_;
  std::optional<ApiError> error_;
};

// A JSON number as an integer: 3 and 3.0, nothing else.
std::optional<std::int64_t> whole_number(const Json& value);

// "a string", "a list", ...: a JSON value's kind in words.
const char* kind_of(const Json& value);

}  // namespace steadfast
