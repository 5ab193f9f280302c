// Damages bytes as a hostile or broken file would: flipped bits, spliced and repeated parts, truncations, and integers
// of 1 to 8 bytes replaced by boundary values. The same seed gives the same damage.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "support/bytes.h"

namespace steadfast::test {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  // 1 to 4 changes of a file of the corpus, which is not empty and holds no empty file.
  Bytes next(const std::vector<Bytes>& corpus);

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  void change(Bytes& bytes, const std::vector<Bytes>& corpus);
  void set_integer(Bytes& bytes);
  void set_digits(Bytes& bytes);
  void splice(Bytes& bytes, const Bytes& other);

  std::mt19937_64 random_;
};

}  // namespace steadfast::test
