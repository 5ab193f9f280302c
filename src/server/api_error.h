// What a client is told when its request cannot be served: OpenAI's error object and the HTTP status beside it.
// Outcome<T> is a value or such an error; the server's parsing functions return it.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "text/chat_template.h"

namespace steadfast {

struct ApiError {
  int status = 400;
  std::string message;
  std::string param;  // the field at fault, empty: none
  std::string code;   // for programs, for example "context_length_exceeded"; empty: none
};

// A 400 about one field of the request.
template <typename... Args>
ApiError bad_field(std::string param, fmt::format_string<Args...> format, Args&&... args) {
  return {400, fmt::format(format, std::forward<Args>(args)...), std::move(param), ""};
}

// {"error": {"message", "type", "param", "code"}}; the type follows from the status.
Json to_json(const ApiError& error);

// JSON text for the wire: UTF-8, what is not valid becomes U+FFFD, so that writing never fails.
std::string json_text(const Json& value);

// A client's word for use inside a message or a log line: printable ASCII and valid UTF-8 only, at most 80 bytes.
std::string shown_word(std::string_view text);

template <typename T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design, as `return value;`
  Outcome(ApiError error) : error_(std::move(error)) {}  // NOLINT: the same
  explicit operator bool() const { return value_.has_value(); }
  T& operator*() {
    CHECK(value_.has_value(), "value of a failed Outcome: {}", error_.message);
    return *value_;
  }
  T* operator->() { return &**this; }
  const ApiError& error() const { return error_; }

 private:
  ApiError error_;
  std::optional<T> value_;
};

}  // namespace steadfast
