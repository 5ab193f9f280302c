// Every CUDA call is checked: cuda_status turns a cudaError_t into a Status that names the call.
#pragma once

#include <cuda_runtime.h>

#include "base/status.h"

namespace steadfast::cuda {

inline Status cuda_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return Status::ok();
  return Status::error("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

}  // namespace steadfast::cuda
