// Equality: one row of verify's table, what was compared with what and how it came out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace steadfast {

// The first place where two ways of computing the same thing gave other bits.
struct Difference {
  std::string where;      // "stream 3 of 17, bf16 cache"
  std::string what;       // "12 of 40 rows differ", "ids 5 and 9"
  std::int64_t position;  // of the stream
  double distance;        // there: the largest |a - b| of the logits; of a reply, of its log-probabilities
};

struct Equality {
  std::string name;  // "a prompt in pieces = in one piece"
  std::string kv;    // the cache's types that it ran with: "bf16 f32"
  int cases = 0, differing = 0;
  std::int64_t rows = 0, replies = 0;  // compared
  std::optional<Difference> first;
  std::string skipped;  // why it did not run, or not wholly; empty: it did
  double seconds = 0;
};

}  // namespace steadfast
