// The CPU backend: kernels of the widest instruction set, a thread team, and scratch that grows to what is needed.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace steadfast {

struct CpuOptions {
  int threads = 0;  // 0: one for each core that this process may use
  Act act = Act::kInt8;
  std::string isa;                // "": the widest; else "scalar", "avx2", "avx512"
  std::optional<Act> prompt_act;  // default: as act
};

Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options);

}  // namespace steadfast
