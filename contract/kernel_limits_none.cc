// A build without CUDA runs no kernels of a card.
#include "contract/kernel_limits.h"

namespace steadfast::contract {

Result<LoadedKernels> loaded_kernels(Backend& backend) {
  return Status::error("{} has no CUDA kernels", backend.describe());
}

}  // namespace steadfast::contract
