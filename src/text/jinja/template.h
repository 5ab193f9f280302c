// A parsed Jinja template. Immutable: safe to share between threads. Every error is a Status that names the line.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace steadfast::jinja {

class Template {
 public:
  static Result<Template> parse(std::string_view source);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // The names that the template sees; of two equal ones the later counts. `now` is seconds since 1970, for
  // strftime_now, which prints it in UTC; *clock_read, where given, tells whether it was called. Untrusted templates
  // and values are fine: limits.h says what they may use.
  using Context = std::vector<std::pair<std::string_view, const nlohmann::ordered_json*>>;
  Result<std::string> render(const Context& context, std::int64_t now, bool* clock_read = nullptr) const;

 private:
  struct Impl;
  explicit Template(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace steadfast::jinja
