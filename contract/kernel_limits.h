// Registers, stack, spills and shared memory of the CUDA kernels as tools/kernel_limits.py recorded them from the
// compiler's report (contract/limits/*.tsv, compiled in), and the running program's own kernels beside that record.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace steadfast::contract {

struct KernelLimits {
  std::string source, kernel;  // kernel: with template arguments, without parameters
  int registers = 0, stack = 0, spill_stores = 0, spill_loads = 0, shared = 0;
};
struct LimitsRecord {
  std::string architecture, compiler;  // "sm_90a", "13.0.88"
  std::vector<KernelLimits> kernels;
};

// from: the file's name, which names the architecture.
Result<LimitsRecord> parse_limits(std::string_view text, std::string_view from);
const std::vector<LimitsRecord>& built_in_limits();

// A kernel of the running program, as the driver loaded it.
struct LoadedKernel {
  std::string name;                          // as KernelLimits::kernel
  int registers = 0, local = 0, shared = 0;  // local: bytes of stack and spills a thread
};
struct LoadedKernels {
  std::string architecture, compiler;  // of the card ("sm_90a"), of this program
  std::vector<LoadedKernel> kernels;
};
// All kernels that this program carries for the backend's card. Fails where it is no card's.
Result<LoadedKernels> loaded_kernels(Backend& backend);

struct LimitsComparison {
  int compared = 0, unknown = 0;   // unknown: not in the record
  std::vector<std::string> wrong;  // a sentence each: local memory, or (by the same compiler) another number
  std::vector<std::string> notes;
};
LimitsComparison compare(const LoadedKernels& loaded, const LimitsRecord& record);

// "void (anonymous namespace)::f<1>(int)" and its mangled form to "f<1>".
std::string plain_name(const std::string& name);

}  // namespace steadfast::contract
