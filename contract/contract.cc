// Picks cases, puts each through its kernel's gates, and turns what a device failed in into a Status.
#include "contract/contract.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>

#include "contract/embedded.h"

namespace steadfast::contract {
namespace {

const std::vector<Column>* columns_of(const std::string& kernel) {
  const Kernel* found = find_kernel(kernel);
  return found == nullptr ? nullptr : &found->columns;
}

Arithmetic arithmetic_of(const Backend& backend, Act act) {
  if (backend.target().starts_with("cuda")) return act == Act::kInt8 ? Arithmetic::kCudaInt8 : Arithmetic::kCuda;
  switch (act) {
    case Act::kF32:
      return Arithmetic::kCpuF32;
    case Act::kBF16:
      return Arithmetic::kCpuBF16;
    case Act::kInt8:
      break;
  }
  return Arithmetic::kCpuInt8;
}

Context context_of(Backend& backend) {
  Context context{backend, arithmetic_of(backend, backend.act()), {}};
  if (backend.prompt_act() != backend.act()) context.prompts = arithmetic_of(backend, backend.prompt_act());
  return context;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

bool matches(std::string_view name, std::string_view glob) {
  if (glob.empty()) return name.empty();
  if (glob[0] == '*') {
    for (std::size_t skip = 0; skip <= name.size(); ++skip)
      if (matches(name.substr(skip), glob.substr(1))) return true;
    return false;
  }
  return !name.empty() && (glob[0] == '?' || glob[0] == name[0]) && matches(name.substr(1), glob.substr(1));
}

const std::vector<Case>& built_in_cases() {
  static const std::vector<Case> kCases = [] {
    std::vector<Case> all;
    for (const Embedded& file : embedded_cases()) {
      auto cases = parse_cases(file.text, std::string(file.name), columns_of);
      CHECK(cases.is_ok(), "{}", cases.message());
      all.insert(all.end(), cases->begin(), cases->end());
    }
    return all;
  }();
  return kCases;
}

Result<std::vector<Case>> read_cases(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad()) return Status::error("{} cannot be read; give a file of cases", path);
  return parse_cases(text.str(), path, columns_of);
}

namespace {

// The kernel's cases that the selection takes on this backend.
std::vector<const Case*> selected(const Kernel& kernel, const Options& options, Context& context,
                                  std::vector<std::string>& skipped) {
  std::vector<const Case*> picked;
  if (!matches(kernel.name, options.selection.kernels)) return picked;
  for (const Case& one : options.cases) {
    if (one.kernel != kernel.name) continue;
    if (one.full && !options.selection.full) continue;
    if (one.card && !is_cuda(context.arithmetic)) continue;
    const Status supported = kernel.supported == nullptr ? Status::ok() : kernel.supported(context, one);
    if (!supported) {
      skipped.push_back(fmt::format("{}, {}: {}", kernel.name, one.name, supported.message()));
      continue;
    }
    picked.push_back(&one);
    if (options.selection.smallest) break;
  }
  return picked;
}

Status nothing_selected(const Options& options) {
  std::vector<std::string> names;
  for (const Kernel& kernel : all_kernels()) names.push_back(kernel.name);
  return Status::error("no case of a kernel \"{}\" here; the kernels are {}", options.selection.kernels,
                       fmt::join(names, ", "));
}

}  // namespace

bool Outcome::fine() const {
  return std::all_of(table.begin(), table.end(), [](const Tally& tally) { return tally.fine(); });
}

Result<Outcome> check(std::shared_ptr<Backend> backend, const Options& options) {
  Outcome outcome;
  outcome.device = backend->describe();
  std::string at;
  try {
    Context context = context_of(*backend);
    if (options.schedules)
      context.schedules = is_cuda(context.arithmetic) ? cuda_schedules(backend) : cpu_schedules(*backend);
    for (const Schedule& schedule : context.schedules) outcome.schedules.push_back(schedule.name);
    for (const Kernel& kernel : all_kernels()) {
      Tally tally;
      tally.kernel = kernel.name;
      const double begin = now();
      for (const Case* one : selected(kernel, options, context, outcome.skipped)) {
        at = fmt::format("{}, {}: ", kernel.name, one->name);
        Gates gates(tally, *one);
        kernel.check(context, *one, gates);
        ++tally.cases;
      }
      tally.seconds = now() - begin;
      if (tally.cases == 0) continue;
      if (options.progress) options.progress(tally);
      outcome.table.push_back(std::move(tally));
    }
  } catch (const DeviceError& error) {
    return Status::error("{}{}", at, error.what());
  }
  if (outcome.table.empty()) return nothing_selected(options);
  return outcome;
}

namespace {

// Median and least seconds of a call. A batch of calls is sent together, so that a launch's own cost is hidden as in a
// round; the first batches warm up.
std::pair<double, double> time_calls(Backend& backend, const std::function<void()>& call) {
  std::byte here{};
  auto mark = need(backend.allocate(64));
  const auto batch = [&](int calls) {
    const double begin = now();
    for (int i = 0; i < calls; ++i) call();
    need(backend.finish());
    need(backend.download(&here, mark->data(), 1));
    return now() - begin;
  };
  batch(1);
  const double once = batch(1);
  const int calls = static_cast<int>(std::clamp(0.02 / std::max(once, 1e-7), 1.0, 100.0));
  batch(calls);
  std::vector<double> times;
  for (int i = 0; i < (once > 0.2 ? 3 : 7); ++i) times.push_back(batch(calls) / calls);
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front()};
}

// Both measured here: the bandwidth of a copy (read and write), the rate of a large product.
void measure_rates(Context& context, BenchOutcome& outcome) {
  const bool card = is_cuda(context.arithmetic);
  Backend& backend = context.backend;
  const std::size_t bytes = std::size_t{card ? 512u : 64u} << 20;
  {
    auto from = need(backend.allocate(bytes)), to = need(backend.allocate(bytes));
    const auto copy = [&] { need(backend.copy(to->data(), from->data(), bytes)); };
    outcome.bytes_per_second = 2.0 * static_cast<double>(bytes) / time_calls(backend, copy).first;
  }
  const std::string text = card ? "linear\twhen\trows\tin\tweights\tprologue\tepilogue\tfine\n"
                                  "rate\tquick\t4096\t8192\t8192:dense/bf16\tplain\tplain\tno\n"
                                : "linear\twhen\trows\tin\tweights\tprologue\tepilogue\tfine\n"
                                  "rate\tquick\t512\t1024\t1024:4/64/bf16\tplain\tplain\tno\n";
  const auto cases = need(parse_cases(text, "the rate's case", columns_of));
  const Kernel& linear = *find_kernel("linear");
  const Timed largest = linear.timed(context, cases[0]).back();
  outcome.operations_per_second = largest.floor.operations / time_calls(backend, largest.call).first;
}

}  // namespace

Result<BenchOutcome> bench(std::shared_ptr<Backend> backend, const Options& options,
                           const std::function<void(const Timing&)>& progress) {
  BenchOutcome outcome;
  outcome.device = backend->describe();
  std::string at;
  try {
    Context context = context_of(*backend);
    measure_rates(context, outcome);
    for (const Kernel& kernel : all_kernels()) {
      for (const Case* one : selected(kernel, options, context, outcome.skipped)) {
        at = fmt::format("{}, {}: ", kernel.name, one->name);
        for (const Timed& timed : kernel.timed(context, *one)) {
          Timing timing{kernel.name, one->name, timed.what, 0, 0, 0, true};
          const double by_bytes = timed.floor.bytes / outcome.bytes_per_second;
          const double by_operations = timed.floor.operations / outcome.operations_per_second;
          timing.floor = std::max(by_bytes, by_operations);
          timing.by_bytes = by_bytes >= by_operations;
          std::tie(timing.seconds, timing.least) = time_calls(*backend, timed.call);
          if (progress) progress(timing);
          outcome.table.push_back(std::move(timing));
        }
      }
    }
  } catch (const DeviceError& error) {
    return Status::error("{}{}", at, error.what());
  }
  if (outcome.table.empty()) return nothing_selected(options);
  return outcome;
}

}  // namespace steadfast::contract
