// The error of a template or of its input, thrown while lexing, parsing and rendering and caught in template.cc.
// A line of 0 is filled in there with the line being evaluated.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

namespace steadfast::jinja {

class Error : public std::exception {
 public:
  Error(int line, std::string message) : line_(line), message_(std::move(message)) {}
  int line() const { return line_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  int line_;
  std::string message_;
};

template <typename... Args>
[[noreturn]] void fail_at(int line, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(line, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(0, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace steadfast::jinja
