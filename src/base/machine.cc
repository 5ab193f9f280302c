// Linux: sysconf, /proc, and the limits of control groups, version 2 and 1.
#include "base/machine.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace steadfast {

std::size_t machine_memory() {
  auto bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::size_t limit = 0;
    if (std::ifstream file(path); file >> limit && limit > 0) bytes = std::min(bytes, limit);  // "max": not a number
  }
  return bytes;
}

std::size_t process_memory() {
  std::size_t all = 0, resident = 0;  // pages
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace steadfast
