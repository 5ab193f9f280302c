// The CUDA backend: weights, caches and activations in one card's memory, ops as launches of a Recorder (recorder.h).
// Ops return nothing; what fails in them is reported by the next finish(), download() or draw(). A failure that leaves
// the card unusable (an illegal address, a fault of the card) is remembered: all later rounds are refused with it.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace steadfast {

struct CudaOptions {
  int device = 0;
  Act prompt_act = Act::kBF16;  // kBF16 or kInt8
  int threads = 0;              // of the host, for packing weights; 0: one for each core that this process may use
  bool graphs = true;
  bool timed = false;  // Backend::op_times(): every launch alone between two events
};

// Cards that a driver shows; 0 without a driver.
int cuda_devices();

Result<std::unique_ptr<Backend>> make_cuda_backend(const CudaOptions& options);

}  // namespace steadfast
