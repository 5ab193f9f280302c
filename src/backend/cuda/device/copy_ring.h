// Copies from device to shared memory that run beside the arithmetic: 16 bytes a thread (cp.async), and the barriers
// in shared memory by which those who fill a slot and those who read it wait for each other.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace steadfast::cuda {

__device__ __forceinline__ void copy_16(std::uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(to), "l"(from) : "memory");
}

// The same with a policy for L2 (read_once).
__device__ __forceinline__ void copy_16(std::uint32_t to, const void* from, std::uint64_t policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0],[%1],16,%2;" ::"r"(to), "l"(from), "l"(policy)
               : "memory");
}

// Of bytes that nobody reads again soon, as weights in a round: they go first when L2 is full.
__device__ __forceinline__ std::uint64_t read_once() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Closes the group of this thread's copies so far; wait until all of its groups but the newest kNewest have arrived.
__device__ __forceinline__ void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kNewest>
__device__ __forceinline__ void wait_for_older_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
}

// Until this thread's copies have arrived.
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ __forceinline__ void barrier_init(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0],%1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state,[%0];\n}" ::"r"(barrier) : "memory");
}

// Arrives when this thread's copies so far have arrived.
__device__ __forceinline__ void barrier_arrive_after_copies(std::uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done,[%0],%1;\n@!done bra again;\n}" ::"r"(
          barrier),
      "r"(parity)
      : "memory");
#else
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.test_wait.parity.shared.b64 done,[%0],%1;\n@!done bra again;\n}" ::"r"(
          barrier),
      "r"(parity)
      : "memory");
#endif
}

}  // namespace steadfast::cuda
