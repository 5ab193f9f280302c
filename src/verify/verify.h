// `steadfast verify`: the row law's equalities (design.md section 1) on this machine and this model, to the bit.
#pragma once

#include <functional>

#include "engine/load_model.h"

namespace steadfast {

struct VerifyOptions {
  bool full = false;  // more streams, longer prompts and replies; else about a minute on a small model
  std::function<void(const std::string& what)> progress;
};

// One row of the table: what was compared with what.
struct Equality {
  std::string name;  // "pieces of 1, 7, 64 rows = one piece"
  int cases = 0, differing = 0;
  std::string first;  // the first difference found, empty if none
};

// Loads the model as often as settings must differ (threads, instruction sets, cache types).
Result<std::vector<Equality>> verify(const std::filesystem::path& model, const LoadOptions& base,
                                     const VerifyOptions& options);

}  // namespace steadfast
