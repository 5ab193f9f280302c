// Regular expressions of tokenizer files: written for Oniguruma, run by PCRE2 (UTF, Unicode properties, JIT).
// White space is Unicode's White_Space, as there; properties are those of PCRE2's Unicode version. Immutable after
// compiling; each caller has its own Matcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace steadfast {

struct Match {
  std::size_t begin = 0, end = 0;  // bytes
};

class Regex {
 public:
  // A construct that the two engines read differently is an error that names it.
  static Result<Regex> compile(std::string_view pattern);
  // The text itself, no metacharacters.
  static Result<Regex> literal(std::string_view text);

  class Matcher {
   public:
    explicit Matcher(const Regex& regex);
    // The first match at or after `from` in well-formed UTF-8. Nothing where there is none, and nothing past what the
    // limits allow (backtracking without end, which no pattern of a known tokenizer causes).
    std::optional<Match> find(std::string_view text, std::size_t from) const;

   private:
    const Regex* regex_;
    std::shared_ptr<pcre2_real_match_data_8> data_;
  };

 private:
  static Result<Regex> compile_translated(std::string_view pattern, std::uint32_t options);
  std::shared_ptr<const pcre2_real_code_8> code_;
  bool jit_ = false;
};

}  // namespace steadfast
