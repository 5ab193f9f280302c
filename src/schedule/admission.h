// Which waiting stream starts next. Knows no device: pages, or any other unit of memory, are numbers here.
// The first in line starts as soon as it fits; one that fits may pass those before it, but each may be passed
// kMostPassed times, so that many small streams do not keep a big one waiting for ever.
#pragma once

#include <span>

namespace steadfast {

struct Waiting {
  int passed = 0;  // how often a younger stream started before it
  bool background = false;
};

constexpr int kMostPassed = 8;
constexpr int kMostLooked = 16;  // how far down the line one that fits is looked for

// The line is in order of precedence: background streams behind all others, and never past them. fits(i) says whether
// the i-th could start now. Returns its index, or -1.
template <typename Fits>
int next_to_start(std::span<const Waiting> line, Fits&& fits) {
  for (int i = 0; i < static_cast<int>(line.size()) && i < kMostLooked; ++i) {
    const Waiting& waiting = line[static_cast<std::size_t>(i)];
    if (waiting.background != line.front().background) break;
    if (fits(i)) return i;
    if (waiting.passed >= kMostPassed) break;
  }
  return -1;
}

}  // namespace steadfast
