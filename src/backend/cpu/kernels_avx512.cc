// The kernels of kernel_table.h compiled for avx512; flags in CMakeLists.txt. Nothing else may be in this file.
#include "backend/cpu/kernel_table.h"

namespace steadfast::cpu {

const Kernels& avx512_kernels() {
  static constexpr Kernels kKernels = make_kernels<Avx512>();
  return kKernels;
}

}  // namespace steadfast::cpu
