// The files of contract/cases and contract/limits as the program carries them (CMakeLists.txt writes the texts).
#pragma once

#include <span>
#include <string_view>

namespace steadfast::contract {

struct Embedded {
  std::string_view name, text;  // "linear.tsv"
};
std::span<const Embedded> embedded_cases();
std::span<const Embedded> embedded_limits();  // "sm_90a.tsv"

}  // namespace steadfast::contract
