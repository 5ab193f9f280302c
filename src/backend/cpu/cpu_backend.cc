// Making the CPU backend, and its memory, which is plain host memory.
#include "backend/cpu/cpu_backend.h"

#include <cstring>

#include "backend/cpu/cpu_backend_impl.h"
#include "base/cores.h"

namespace steadfast {

namespace cpu {
namespace {

class HostMemory : public DeviceMemory {
 public:
  explicit HostMemory(Storage storage) : storage_(std::move(storage)) {}
  void* data() override { return storage_.data(); }
  std::size_t bytes() const override { return storage_.bytes(); }

 private:
  Storage storage_;
};

}  // namespace

std::string CpuBackend::describe() const {
  const std::string prompts =
      prompt_act_ == act_ ? std::string() : fmt::format(", of prompts {}", to_string(prompt_act_));
  return fmt::format("cpu, {}, {} thread{}, {} activations{}", kernels_->name, team_.threads(),
                     team_.threads() == 1 ? "" : "s", to_string(act_), prompts);
}

Result<std::unique_ptr<DeviceMemory>> CpuBackend::allocate(std::size_t bytes) {
  auto storage = Storage::allocate(bytes);
  if (!storage) return storage.status();
  return std::unique_ptr<DeviceMemory>(std::make_unique<HostMemory>(std::move(*storage)));
}

Status CpuBackend::upload(void* device, const void* host, std::size_t bytes) {
  std::memcpy(device, host, bytes);
  return Status::ok();
}

Status CpuBackend::download(void* host, const void* device, std::size_t bytes) {
  std::memcpy(host, device, bytes);
  return Status::ok();
}

Status CpuBackend::copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return Status::ok();
}

Status CpuBackend::clear(void* device, std::size_t bytes) {
  std::memset(device, 0, bytes);
  return Status::ok();
}

void CpuBackend::copy_rows(const Matrix& from, const Matrix& to) {
  for (int row = 0; row < from.rows; ++row)
    std::memcpy(to.row(row), from.row(row), static_cast<std::size_t>(from.width) * sizeof(float));
}

}  // namespace cpu

Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options) {
  if (options.threads < 0 || options.threads > 1024)
    return Status::error("--threads {}: give a number from 1 to 1024, or leave it out for all cores", options.threads);
  const cpu::Kernels* kernels = cpu::select_kernels(options.isa.empty() ? nullptr : options.isa.c_str());
  if (kernels == nullptr)
    return Status::error("instruction set \"{}\" is unknown or this machine lacks it; use scalar, avx2 or avx512",
                         options.isa);
  const int threads = options.threads > 0 ? options.threads : usable_cores();
  return std::unique_ptr<Backend>(
      std::make_unique<cpu::CpuBackend>(*kernels, threads, options.act, options.prompt_act.value_or(options.act)));
}

}  // namespace steadfast
