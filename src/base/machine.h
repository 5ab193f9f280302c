// What the machine has: the memory that this process may use.
#pragma once

#include <cstddef>

namespace steadfast {

// Bytes: the machine's, or what its control group (a container's limit) allows, where that is less.
std::size_t machine_memory();

}  // namespace steadfast
