// Request bodies as JSON: nothing duplicated, nested too deep, too many, not UTF-8 or not a finite number gets through.
#pragma once

#include <string_view>

#include "server/api_error.h"

namespace steadfast {

struct JsonLimits {
  std::size_t depth = 64;          // containers inside one another; bounds every later recursion over the value
  std::size_t values = 1'000'000;  // values in all, so that a small body cannot become a large tree
};

// The error's message says what is wrong and at which byte.
Outcome<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace steadfast
