// The kernels of kernel_table.h compiled for avx2; flags in CMakeLists.txt. Nothing else may be in this file.
#include "backend/cpu/kernel_table.h"

namespace steadfast::cpu {

const Kernels& avx2_kernels() {
  static constexpr Kernels kKernels = make_kernels<Avx2>();
  return kKernels;
}

}  // namespace steadfast::cpu
