// Status and Result<T>: how everything that a user or a file can cause is reported.
// An error is one sentence that says what is wrong and what to do; no error ever aborts. Results are moved out once.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace steadfast {

class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status ok() { return {}; }

  template <typename... Args>
  static Status error(fmt::format_string<Args...> format, Args&&... args) {
    return Status(fmt::format(format, std::forward<Args>(args)...));
  }

  bool is_ok() const { return !message_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const std::string& message() const {
    static const std::string kOk = "ok";
    return message_ ? *message_ : kOk;
  }

 private:
  explicit Status(std::string message) : message_(std::move(message)) {}
  std::optional<std::string> message_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit by design, as `return value;`
  Result(Status status) : status_(std::move(status)) {
    CHECK(!status_.is_ok(), "a Result without a value needs an error");
  }

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }
  const std::string& message() const { return status_.message(); }

  T& value() & {
    CHECK(is_ok(), "value of a failed Result: {}", status_.message());
    return *value_;
  }
  const T& value() const& {
    CHECK(is_ok(), "value of a failed Result: {}", status_.message());
    return *value_;
  }
  T&& value() && {
    CHECK(is_ok(), "value of a failed Result: {}", status_.message());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace steadfast
