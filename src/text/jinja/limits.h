// What one template and one rendering may use. Templates come from model files and messages from requests, so both
// are untrusted: whatever goes past these bounds is an error of the template, never a crash or a full machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace steadfast::jinja {

inline constexpr std::size_t kMaxTemplateBytes = std::size_t{1} << 20;
inline constexpr int kMaxNesting = 100;          // parentheses, operators and blocks inside each other, in the source
inline constexpr int kMaxEvaluationDepth = 600;  // nodes being evaluated at once (macros that call macros)
inline constexpr std::uint32_t kMaxValueDepth = 100;                      // lists and dicts inside each other
inline constexpr std::uint64_t kMaxValueWeight = std::uint64_t{1} << 22;  // scalars and blocks of 64 bytes in one value
inline constexpr std::int64_t kMaxSteps =
    20'000'000;  // each about what evaluating one node costs: a second or so in all
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;     // one string, and the output
inline constexpr std::size_t kMaxMemoryBytes = std::size_t{256} << 20;  // all strings, lists and dicts alive
inline constexpr std::int64_t kMaxRange = 100'000;                      // as Jinja's sandbox

}  // namespace steadfast::jinja
