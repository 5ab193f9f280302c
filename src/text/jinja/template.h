// A parsed Jinja template. Immutable: safe to share between threads. Every error is a Status that names the line.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace steadfast::jinja {

class Template {
 public:
  static Result<Template> parse(std::string_view source);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // `context` is an object whose members are the names that the template sees; `now` is seconds since 1970, for
  // strftime_now. Untrusted templates and values are fine: limits.h says what they may use.
  Result<std::string> render(const nlohmann::ordered_json& context, std::int64_t now) const;

 private:
  struct Impl;
  explicit Template(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace steadfast::jinja
