// The CPU's other ways: its other instruction sets, and another number of threads.
#include "backend/cpu/cpu_backend.h"
#include "contract/contract.h"

namespace steadfast::contract {

std::vector<Schedule> cpu_schedules(Backend& backend) {
  std::vector<Schedule> schedules;
  const std::string here = backend.describe();
  for (const char* isa : {"scalar", "avx2", "avx512"}) {
    if (here.find(isa) != std::string::npos) continue;
    CpuOptions options;
    options.threads = 1;
    options.act = backend.act();
    options.isa = isa;
    options.prompt_act = backend.prompt_act();
    auto other = make_cpu_backend(options);
    // Without vectors many rows take long and show nothing that few do not.
    if (other) schedules.push_back({isa, std::move(*other), 1, 17, ""});
  }
  CpuOptions options;
  options.threads = 3;
  options.act = backend.act();
  options.prompt_act = backend.prompt_act();
  auto threads = make_cpu_backend(options);
  need(threads.status());
  schedules.push_back({"3 threads", std::move(*threads), 1, 1 << 30, ""});
  return schedules;
}

}  // namespace steadfast::contract
