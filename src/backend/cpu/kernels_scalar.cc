// The kernels of kernel_table.h compiled for scalar; flags in CMakeLists.txt. Nothing else may be in this file.
#include "backend/cpu/kernel_table.h"

namespace steadfast::cpu {

const Kernels& scalar_kernels() {
  static constexpr Kernels kKernels = make_kernels<Scalar>();
  return kKernels;
}

}  // namespace steadfast::cpu
