// The end of a failed CHECK: prints where, what and the values to standard error, then aborts.
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace steadfast {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed: %s\n", file, line, condition, message.c_str());
  std::abort();
}

}  // namespace steadfast
