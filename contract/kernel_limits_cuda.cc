// The kernels of the running program: from each kernel that was launched to the module that its source file became,
// from there to all functions of the module. The driver's functions come from the runtime: no other library is linked.
#include <cuda.h>
#include <cuda_runtime.h>

#include <set>

#include "backend/cuda/cuda_backend_impl.h"
#include "contract/kernel_limits.h"

namespace steadfast::contract {
namespace {

struct Driver {
  CUresult (*module_of)(CUmodule*, CUfunction) = nullptr;
  CUresult (*count)(unsigned*, CUmodule) = nullptr;
  CUresult (*enumerate)(CUfunction*, unsigned, CUmodule) = nullptr;
  CUresult (*name)(const char**, CUfunction) = nullptr;
  CUresult (*attribute)(int*, CUfunction_attribute, CUfunction) = nullptr;
  CUresult (*load)(CUfunction) = nullptr;
};

template <typename Function>
Status find(const char* name, Function& to) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const auto status = cudaGetDriverEntryPointByVersion(name, &found, 12040, cudaEnableDefault, &result);
  if (status != cudaSuccess || result != cudaDriverEntryPointSuccess || found == nullptr)
    return Status::error("the driver has no {}; use one of CUDA 12.4 or later", name);
  to = reinterpret_cast<Function>(found);
  return Status::ok();
}

Result<Driver> driver() {
  Driver d;
  if (auto s = find("cuFuncGetModule", d.module_of); !s) return s;
  if (auto s = find("cuModuleGetFunctionCount", d.count); !s) return s;
  if (auto s = find("cuModuleEnumerateFunctions", d.enumerate); !s) return s;
  if (auto s = find("cuFuncGetName", d.name); !s) return s;
  if (auto s = find("cuFuncGetAttribute", d.attribute); !s) return s;
  if (auto s = find("cuFuncLoad", d.load); !s) return s;
  return d;
}

Status done(CUresult result, const char* what) {
  return result == CUDA_SUCCESS ? Status::ok() : Status::error("{} failed with {}", what, static_cast<int>(result));
}

Result<LoadedKernel> describe(const Driver& d, CUfunction function) {
  const char* name = nullptr;
  LoadedKernel kernel;
  if (auto s = done(d.load(function), "cuFuncLoad"); !s) return s;
  if (auto s = done(d.name(&name, function), "cuFuncGetName"); !s) return s;
  kernel.name = plain_name(name);
  const auto get = [&](int& to, CUfunction_attribute what) {
    return done(d.attribute(&to, what, function), "cuFuncGetAttribute");
  };
  if (auto s = get(kernel.registers, CU_FUNC_ATTRIBUTE_NUM_REGS); !s) return s;
  if (auto s = get(kernel.local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES); !s) return s;
  if (auto s = get(kernel.shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES); !s) return s;
  return kernel;
}

}  // namespace

Result<LoadedKernels> loaded_kernels(Backend& backend) {
  auto* card = dynamic_cast<cuda::CudaBackend*>(&backend);
  if (card == nullptr) return Status::error("{} has no CUDA kernels", backend.describe());
  auto d = driver();
  if (!d) return d.status();
  std::set<CUmodule> modules;
  for (const void* kernel : card->recorder().kernels()) {
    cudaFunction_t function = nullptr;
    if (auto s = cuda::cuda_status(cudaGetFuncBySymbol(&function, kernel), "cudaGetFuncBySymbol"); !s) return s;
    CUmodule module = nullptr;
    if (auto s = done(d->module_of(&module, function), "cuFuncGetModule"); !s) return s;
    modules.insert(module);
  }
  const cuda::CardTraits& traits = card->recorder().card();
  LoadedKernels result;
  // The build names Hopper's architecture with its letter (cmake: STEADFAST_SM), as its record does.
  result.architecture = fmt::format("sm_{}{}{}", traits.major, traits.minor, traits.wgmma() ? "a" : "");
  result.compiler = STEADFAST_NVCC_VERSION;
  for (CUmodule module : modules) {
    unsigned count = 0;
    if (auto s = done(d->count(&count, module), "cuModuleGetFunctionCount"); !s) return s;
    std::vector<CUfunction> functions(count);
    if (auto s = done(d->enumerate(functions.data(), count, module), "cuModuleEnumerateFunctions"); !s) return s;
    for (CUfunction function : functions) {
      auto kernel = describe(*d, function);
      if (!kernel) return kernel.status();
      result.kernels.push_back(std::move(*kernel));
    }
  }
  return result;
}

}  // namespace steadfast::contract
