// Devices of a build without CUDA.
#include "backend/cpu/cpu_backend.h"
#include "engine/devices.h"
#include "engine/load_model.h"

namespace steadfast {

std::string default_device() { return "cpu"; }

Result<std::unique_ptr<Backend>> make_backend(const LoadOptions& options) {
  if (options.device == "cuda" || options.device.starts_with("cuda:"))
    return Status::error(
        "--device {}: this build has no CUDA backend; configure it with -DSTEADFAST_CUDA=on, or use "
        "--device cpu",
        options.device);
  if (options.device != "cpu") return Status::error("--device {}: use cpu, cuda or cuda:NUMBER", options.device);
  return make_cpu_backend({options.threads, options.act, options.isa, options.prompt_act});
}

std::string gpu_note() { return "no GPU backend in this build"; }

}  // namespace steadfast
