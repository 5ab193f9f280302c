// How many cores this process may use: the machine's, or what its affinity allows.
#pragma once

namespace steadfast {

int usable_cores();

}  // namespace steadfast
