// Programmatic dependent launch: begin_next lets the next launch start its preamble, wait_for_earlier holds until
// all earlier launches' writes are visible. Before sm_90 neither is needed: launches follow one another.
#pragma once

namespace steadfast::cuda {

__device__ inline void begin_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ inline void wait_for_earlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace steadfast::cuda
