// The devices that this build and this machine have: --device cpu, cuda or cuda:1.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace steadfast {

struct LoadOptions;

// "cuda" where the build has a CUDA backend and a driver shows a card, else "cpu".
std::string default_device();

// The backend of options.device; the error says what the machine or the build lacks.
Result<std::unique_ptr<Backend>> make_backend(const LoadOptions& options);

// For `info`: what of GPUs this build and this machine have.
std::string gpu_note();

}  // namespace steadfast
