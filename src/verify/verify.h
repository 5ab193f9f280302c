// `steadfast verify`: the row law's equalities (design.md section 1) on this machine and this model, to the bit.
// With a planted fault the same equalities have to fail: that shows what they can see.
#pragma once

#include <functional>
#include <vector>

#include "engine/load_model.h"
#include "verify/equality.h"
#include "verify/faults/fault.h"

namespace steadfast {

struct VerifyOptions {
  bool full = false;                                  // more streams, more and longer replies, every cache type
  std::optional<Fault> plant;                         // runs only the checks that look for it, up to the first catch
  std::function<void(const Equality& row)> progress;  // after each check
};

struct Verification {
  std::string device;        // as the backend describes itself
  std::string cannot_carry;  // why this model cannot show the planted fault: nothing ran then
  std::vector<Equality> table;

  const Equality* first_differing() const;  // nullptr: all is equal
  std::int64_t rows() const;
  std::int64_t replies() const;
};

// Loads the model once, and again for each number of threads and each instruction set.
Result<Verification> verify(const std::filesystem::path& model, const LoadOptions& base, const VerifyOptions& options);

}  // namespace steadfast
