// How a long fetch is told of. The program prints; tests collect.
#pragma once

#include <cstdint>
#include <string>

namespace steadfast {

class Reporter {
 public:
  virtual ~Reporter() = default;
  // One sentence.
  virtual void note(const std::string& sentence) = 0;
  // Called often; total is 0 where it is not known. done == total ends a file.
  virtual void progress(const std::string& file, std::uint64_t done, std::uint64_t total) = 0;
};

}  // namespace steadfast
