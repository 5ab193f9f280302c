// The kernels of the running program: the program's own file holds one image a source file (section .nv_fatbin); the
// driver loads each for this card and names all functions in it. The driver's functions come from the runtime, so that
// no other library is linked.
#include "contract/kernel_limits.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <elf.h>

#include <cstring>
#include <fstream>

#include "backend/cuda/cuda_backend_impl.h"

namespace steadfast::contract {
namespace {

struct Driver {
  CUresult (*load)(CUmodule*, const void*) = nullptr;
  CUresult (*unload)(CUmodule) = nullptr;
  CUresult (*count)(unsigned*, CUmodule) = nullptr;
  CUresult (*enumerate)(CUfunction*, unsigned, CUmodule) = nullptr;
  CUresult (*name)(const char**, CUfunction) = nullptr;
  CUresult (*attribute)(int*, CUfunction_attribute, CUfunction) = nullptr;
  CUresult (*ready)(CUfunction) = nullptr;
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
  if (auto s = find("cuModuleLoadData", d.load); !s) return s;
  if (auto s = find("cuModuleUnload", d.unload); !s) return s;
  if (auto s = find("cuModuleGetFunctionCount", d.count); !s) return s;
  if (auto s = find("cuModuleEnumerateFunctions", d.enumerate); !s) return s;
  if (auto s = find("cuFuncGetName", d.name); !s) return s;
  if (auto s = find("cuFuncGetAttribute", d.attribute); !s) return s;
  if (auto s = find("cuFuncLoad", d.ready); !s) return s;
  return d;
}

Status done(CUresult result, const char* what) {
  return result == CUDA_SUCCESS ? Status::ok() : Status::error("{} failed with {}", what, static_cast<int>(result));
}

// The bytes of a section of this program's file; empty: there is none.
Result<std::vector<std::uint64_t>> own_section(const std::string& wanted) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const auto read = [&file](std::uint64_t at, void* to, std::size_t bytes) {
    file.seekg(static_cast<std::streamoff>(at));
    return static_cast<bool>(file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)));
  };
  Elf64_Ehdr header{};
  if (!read(0, &header, sizeof header) || header.e_shentsize != sizeof(Elf64_Shdr))
    return Status::error("this program's own file cannot be read");
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (sections.empty() || !read(header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr)))
    return Status::error("this program's file has no list of sections");
  const Elf64_Shdr& names = sections[header.e_shstrndx];
  std::string text(names.sh_size, '\0');
  if (!read(names.sh_offset, text.data(), text.size())) return Status::error("this program's file is cut short");
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name >= text.size() || wanted != text.c_str() + section.sh_name) continue;
    std::vector<std::uint64_t> bytes(section.sh_size / sizeof(std::uint64_t));
    if (!read(section.sh_offset, bytes.data(), bytes.size() * sizeof(std::uint64_t)))
      return Status::error("this program's file is cut short");
    return bytes;
  }
  return std::vector<std::uint64_t>();
}

// An image's header: the magic number, version and header's size, then the size of what follows it.
struct ImageHeader {
  std::uint32_t magic;
  std::uint16_t version, bytes;
  std::uint64_t payload;
};
constexpr std::uint32_t kMagic = 0xBA55ED50;

Result<LoadedKernel> describe(const Driver& d, CUfunction function) {
  const char* name = nullptr;
  LoadedKernel kernel;
  if (auto s = done(d.ready(function), "cuFuncLoad"); !s) return s;
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

Status describe_image(const Driver& d, const void* image, std::vector<LoadedKernel>& to) {
  CUmodule module = nullptr;
  if (auto s = done(d.load(&module, image), "cuModuleLoadData"); !s) return s;
  const auto all = [&]() -> Status {
    unsigned count = 0;
    if (auto s = done(d.count(&count, module), "cuModuleGetFunctionCount"); !s) return s;
    std::vector<CUfunction> functions(count);
    if (auto s = done(d.enumerate(functions.data(), count, module), "cuModuleEnumerateFunctions"); !s) return s;
    for (CUfunction function : functions) {
      auto kernel = describe(d, function);
      if (!kernel) return kernel.status();
      to.push_back(std::move(*kernel));
    }
    return Status::ok();
  };
  Status status = all();
  d.unload(module);
  return status;
}

}  // namespace

Result<LoadedKernels> loaded_kernels(Backend& backend) {
  auto* card = dynamic_cast<cuda::CudaBackend*>(&backend);
  if (card == nullptr) return Status::error("{} has no CUDA kernels", backend.describe());
  if (auto s = backend.finish(); !s) return s;  // the card is this thread's from here on
  auto d = driver();
  if (!d) return d.status();
  auto section = own_section(".nv_fatbin");
  if (!section) return section.status();
  LoadedKernels result;
  const cuda::CardTraits& traits = card->recorder().card();
  // The build names Hopper's architecture with its letter (cmake: STEADFAST_SM), as its record does.
  result.architecture = fmt::format("sm_{}{}{}", traits.major, traits.minor, traits.wgmma() ? "a" : "");
  result.compiler = STEADFAST_NVCC_VERSION;
  for (std::size_t at = 0; at + 2 <= section->size();) {
    ImageHeader header{};
    std::memcpy(&header, section->data() + at, sizeof header);
    if (header.magic != kMagic) {
      ++at;  // padding between images
      continue;
    }
    const std::size_t words = (header.bytes + header.payload + 7) / 8;
    if (words > section->size() - at) return Status::error("this program's images of kernels are cut short");
    if (auto s = describe_image(*d, section->data() + at, result.kernels); !s) return s;
    at += words;
  }
  if (result.kernels.empty()) return Status::error("this program's file holds no kernels");
  return result;
}

}  // namespace steadfast::contract
