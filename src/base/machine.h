// What the machine has: the memory that this process may use, and what of it the process uses.
#pragma once

#include <cstddef>

namespace steadfast {

// Bytes: the machine's, or what its control group (a container's limit) allows, where that is less.
std::size_t machine_memory();

// Bytes of this process that lie in memory now, mapped files included.
std::size_t process_memory();

}  // namespace steadfast
