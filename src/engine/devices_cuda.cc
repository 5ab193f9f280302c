// Devices of a build with CUDA.
#include <charconv>

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"
#include "engine/devices.h"
#include "engine/load_model.h"

namespace steadfast {

std::string default_device() { return cuda_devices() > 0 ? "cuda" : "cpu"; }

Result<std::unique_ptr<Backend>> make_backend(const LoadOptions& options) {
  const std::string& name = options.device;
  if (name == "cpu") return make_cpu_backend({options.threads, options.act, options.isa, options.prompt_act});
  CudaOptions cuda;
  cuda.threads = options.threads;
  cuda.graphs = options.graphs;
  cuda.timed = options.timed;
  const char* end = name.data() + name.size();
  const bool numbered = name.starts_with("cuda:") && name.size() > 5;
  const auto number = std::from_chars(name.data() + std::min<std::size_t>(5, name.size()), end, cuda.device);
  if (name != "cuda" && (!numbered || number.ec != std::errc() || number.ptr != end))
    return Status::error("--device {}: use cpu, cuda or cuda:NUMBER", name);
  if (options.act != Act::kBF16)
    return Status::error("--act {}: on CUDA linears run in bf16; use --act bf16, or --device cpu",
                         to_string(options.act));
  cuda.prompt_act = options.prompt_act.value_or(Act::kBF16);
  if (cuda.prompt_act == Act::kF32)
    return Status::error("--prompt-act f32: on CUDA prompts run in bf16 or int8; use one of them, or --device cpu");
  return make_cuda_backend(cuda);
}

std::string gpu_note() {
  const int count = cuda_devices();
  return count == 0 ? "no NVIDIA card or no driver" : fmt::format("{} NVIDIA card{}", count, count == 1 ? "" : "s");
}

}  // namespace steadfast
