// The kernel contract: every kernel of a backend against float64, every batch and place against the row alone, pages
// against windows, memory around the outputs; planted faults that these gates must see. Works through Backend, so the
// CPU and a card run the same cases (docs/contract.md).
#pragma once

#include <memory>
#include <optional>

#include "contract/kernel.h"

namespace steadfast::contract {

struct Selection {
  std::string kernels = "*";  // a glob: * and ?
  bool full = false;          // the large cases too
  bool smallest = false;      // the first case of each kernel alone
};

// The cases that the program carries.
const std::vector<Case>& built_in_cases();
// A file's instead.
Result<std::vector<Case>> read_cases(const std::string& path);

struct Options {
  Selection selection;
  std::vector<Case> cases;                     // all; the selection picks
  bool schedules = true;                       // every other way to compute the same bits
  std::function<void(const Tally&)> progress;  // after each kernel; empty: none
};

struct Outcome {
  std::string device;
  std::vector<Tally> table;
  std::vector<std::string> skipped;    // cases that this backend has no kernel for, a sentence each
  std::vector<std::string> schedules;  // what was compared beside the backend's own choice
  bool fine() const;
};

// Fails where the selection is empty or the device fails.
Result<Outcome> check(std::shared_ptr<Backend> backend, const Options& options);

struct Timing {
  std::string kernel, name, what;
  double seconds = 0, least = 0;  // median and least of a call
  double floor = 0;               // seconds that its bytes and operations need
  bool by_bytes = true;           // which of them decides
};
struct BenchOutcome {
  std::string device;
  double bytes_per_second = 0, operations_per_second = 0;  // measured: a copy; the largest product
  std::vector<Timing> table;
  std::vector<std::string> skipped;
};
Result<BenchOutcome> bench(std::shared_ptr<Backend> backend, const Options& options,
                           const std::function<void(const Timing&)>& progress);

// Whether a name matches a glob of * and ?.
bool matches(std::string_view name, std::string_view glob);

// Other ways to compute the same bits that this backend has: instruction sets and threads of the CPU, schedules of a
// card (schedules_cpu.cc, schedules_cuda.cc; the latter is empty in builds without CUDA).
std::vector<Schedule> cpu_schedules(Backend& backend);
std::vector<Schedule> cuda_schedules(const std::shared_ptr<Backend>& backend);

}  // namespace steadfast::contract
