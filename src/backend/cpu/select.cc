// Chooses the kernels' instruction set, once, at load: the widest that the machine has, or the one asked for.
#include <string_view>

#include "backend/cpu/kernels.h"

namespace steadfast::cpu {

bool cpu_has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

bool cpu_has_avx512() {
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}

const Kernels* select_kernels(const char* name) {
  if (name == nullptr) {
    if (cpu_has_avx512()) return &avx512_kernels();
    return cpu_has_avx2() ? &avx2_kernels() : &scalar_kernels();
  }
  const std::string_view wanted(name);
  if (wanted == "scalar") return &scalar_kernels();
  if (wanted == "avx2" && cpu_has_avx2()) return &avx2_kernels();
  if (wanted == "avx512" && cpu_has_avx512()) return &avx512_kernels();
  return nullptr;
}

}  // namespace steadfast::cpu
