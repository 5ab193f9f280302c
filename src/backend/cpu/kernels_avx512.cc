// The kernels of kernels_impl.h compiled for avx512; flags in CMakeLists.txt. Nothing else may be in this file.
#include "backend/cpu/kernels_impl.h"

namespace steadfast::cpu {

const Kernels& avx512_kernels() {
  static constexpr Kernels kKernels = make_kernels<Avx512>();
  return kKernels;
}

}  // namespace steadfast::cpu
