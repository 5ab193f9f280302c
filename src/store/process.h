// Runs a program found on the path, without a shell, and waits for it. What it prints goes to our standard error, so
// that its progress bar shows on a terminal and our standard output stays the result's.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace steadfast {

// The exit status; a program that a signal ended gives 128 + the signal. An error: the program could not be started.
Result<int> run_program(const std::vector<std::string>& arguments);

}  // namespace steadfast
