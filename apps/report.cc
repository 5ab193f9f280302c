// How every command reports a failure: one sentence to standard error and the exit status that goes with it.
#include <cstdio>

#include "command.h"

namespace steadfast {

int fail(const Status& status) {
  std::fprintf(stderr, "steadfast: %s\n", status.message().c_str());
  return 1;
}

int misuse(const std::string& sentence) {
  std::fprintf(stderr, "steadfast: %s\n", sentence.c_str());
  return 2;
}

}  // namespace steadfast
