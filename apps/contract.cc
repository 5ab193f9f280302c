// contract: the kernel contract on this machine. check: every kernel through its gates, exit status 1 where one is red
// or a planted fault goes unseen. list: kernels, cases, gates. limits: registers, stack and spills. bench: times beside
// their floors.
#include "contract/contract.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/config.h"
#include "command.h"
#include "contract/kernel_limits.h"
#include "engine/devices.h"
#include "engine/load_model.h"

namespace steadfast {
namespace {

using contract::Case;
using contract::Kernel;
using contract::Tally;
using Json = nlohmann::ordered_json;

struct ContractCommand {
  std::string kernels = "*", cases, device, act, prompt_act;
  int threads = 0;
  bool full = false, smallest = false, json = false;
};

Result<contract::Options> options_of(const ContractCommand& command) {
  contract::Options options;
  options.selection = {command.kernels, command.full, command.smallest};
  if (command.cases.empty()) {
    options.cases = contract::built_in_cases();
    return options;
  }
  auto cases = contract::read_cases(command.cases);
  if (!cases) return cases.status();
  options.cases = std::move(*cases);
  return options;
}

Result<std::shared_ptr<Backend>> backend_of(const ContractCommand& command) {
  LoadOptions options;
  options.device = command.device.empty() ? config().device.value_or(default_device()) : command.device;
  options.threads = command.threads;
  options.isa = config().isa.value_or("");
  auto act = parse_act(!command.act.empty() ? command.act : options.device == "cpu" ? "int8" : "bf16");
  if (!act) return act.status();
  options.act = *act;
  if (!command.prompt_act.empty()) {
    auto prompt_act = parse_act(command.prompt_act, "--prompt-act");
    if (!prompt_act) return prompt_act.status();
    options.prompt_act = *prompt_act;
  }
  auto backend = make_backend(options);
  if (!backend) return backend.status();
  return std::shared_ptr<Backend>(std::move(*backend));
}

int list(const ContractCommand& command) {
  auto options = options_of(command);
  if (!options) return fail(options.status());
  Json all = Json::array();
  for (const Kernel& kernel : contract::all_kernels()) {
    if (!contract::matches(kernel.name, command.kernels)) continue;
    Json cases = Json::array();
    for (const Case& one : options->cases)
      if (one.kernel == kernel.name)
        cases.push_back({{"name", one.name}, {"when", one.card ? "card" : one.full ? "full" : "quick"}});
    if (!command.json) {
      fmt::print("{}: {}\n  gates: {}\n  planted faults: {}\n", kernel.name, kernel.sentence,
                 fmt::join(kernel.gates, "; "), fmt::join(kernel.controls, "; "));
      for (const Json& one : cases)
        fmt::print("  {:<6} {}\n", one["when"].get<std::string>(), one["name"].get<std::string>());
    }
    all.push_back({{"kernel", kernel.name},
                   {"sentence", kernel.sentence},
                   {"gates", kernel.gates},
                   {"controls", kernel.controls},
                   {"cases", cases}});
  }
  if (all.empty()) return misuse(fmt::format("no kernel matches \"{}\"", command.kernels));
  if (command.json) fmt::print("{}\n", all.dump());
  return 0;
}

constexpr auto kCheckLine = "{:<12} {:>6} {:>10} {:>10} {:>12} {:>9} {:>12}\n";

std::string share(double worst) { return std::isfinite(worst) ? fmt::format("{:.3f}", worst) : "not finite"; }

void print(const Tally& tally) {
  fmt::print(kCheckLine, tally.kernel, tally.cases, tally.rows, tally.differing, share(tally.worst),
             fmt::format("{}/{}", tally.caught, tally.controls), tally.overwritten);
  for (const std::string& finding : tally.findings) fmt::print("    {}\n", finding);
}

Json to_json(const Tally& tally) {
  return {{"kernel", tally.kernel},
          {"cases", tally.cases},
          {"rows", tally.rows},
          {"differing", tally.differing},
          {"worst_share_of_bound", std::isfinite(tally.worst) ? Json(tally.worst) : Json("not finite")},
          {"controls", tally.controls},
          {"caught", tally.caught},
          {"overwritten", tally.overwritten},
          {"seconds", tally.seconds},
          {"fine", tally.fine()},
          {"findings", tally.findings}};
}

int check(const ContractCommand& command) {
  auto options = options_of(command);
  if (!options) return fail(options.status());
  auto backend = backend_of(command);
  if (!backend) return fail(backend.status());
  if (!command.json) {
    fmt::print(kCheckLine, "kernel", "cases", "rows", "differing", "error/bound", "caught", "overwritten");
    options->progress = [](const Tally& tally) {
      print(tally);
      std::fflush(stdout);
    };
  }
  auto outcome = contract::check(*backend, *options);
  if (!outcome) return fail(outcome.status());
  if (command.json) {
    Json table = Json::array();
    for (const Tally& tally : outcome->table) table.push_back(to_json(tally));
    fmt::print("{}\n", Json{{"device", outcome->device},
                            {"fine", outcome->fine()},
                            {"schedules", outcome->schedules},
                            {"skipped", outcome->skipped},
                            {"kernels", table}}
                           .dump());
    return outcome->fine() ? 0 : 1;
  }
  for (const std::string& sentence : outcome->skipped) fmt::print("not tested: {}\n", sentence);
  fmt::print("on {}; beside it {}\n{}\n", outcome->device, fmt::join(outcome->schedules, ", "),
             outcome->fine() ? "the contract holds here" : "THE CONTRACT IS BROKEN HERE: please report this table");
  return outcome->fine() ? 0 : 1;
}

constexpr auto kBenchLine = "{:<12} {:<32} {:<20} {:>12} {:>12} {:>12} {:>7}\n";

void print(const contract::Timing& timing) {
  const auto microseconds = [](double seconds) { return fmt::format("{:.1f} us", seconds * 1e6); };
  fmt::print(kBenchLine, timing.kernel, timing.name, timing.what, microseconds(timing.seconds),
             microseconds(timing.least), microseconds(timing.floor) + (timing.by_bytes ? " b" : " o"),
             fmt::format("{:.0f}%", 100 * timing.floor / timing.seconds));
  std::fflush(stdout);
}

int bench(const ContractCommand& command) {
  auto options = options_of(command);
  if (!options) return fail(options.status());
  auto backend = backend_of(command);
  if (!backend) return fail(backend.status());
  if (!command.json) fmt::print(kBenchLine, "kernel", "case", "call", "median", "least", "floor", "reached");
  auto outcome = contract::bench(*backend, *options, [&](const contract::Timing& timing) {
    if (!command.json) print(timing);
  });
  if (!outcome) return fail(outcome.status());
  if (!command.json) {
    fmt::print(
        "on {}; a copy moves {:.1f} GB/s, the largest product makes {:.2f} T operations/s\nfloor: b by bytes, o by "
        "operations\n",
        outcome->device, outcome->bytes_per_second * 1e-9, outcome->operations_per_second * 1e-12);
    return 0;
  }
  Json table = Json::array();
  for (const contract::Timing& timing : outcome->table)
    table.push_back({{"kernel", timing.kernel},
                     {"case", timing.name},
                     {"call", timing.what},
                     {"median_seconds", timing.seconds},
                     {"least_seconds", timing.least},
                     {"floor_seconds", timing.floor},
                     {"floor_by", timing.by_bytes ? "bytes" : "operations"},
                     {"reached", timing.floor / timing.seconds}});
  fmt::print("{}\n", Json{{"device", outcome->device},
                          {"bytes_per_second", outcome->bytes_per_second},
                          {"operations_per_second", outcome->operations_per_second},
                          {"skipped", outcome->skipped},
                          {"timings", table}}
                         .dump());
  return 0;
}

Json to_json(const contract::LimitsRecord& record) {
  Json kernels = Json::array();
  for (const contract::KernelLimits& one : record.kernels)
    kernels.push_back({{"source", one.source},
                       {"kernel", one.kernel},
                       {"registers", one.registers},
                       {"stack", one.stack},
                       {"spill_stores", one.spill_stores},
                       {"spill_loads", one.spill_loads},
                       {"shared", one.shared}});
  return {{"architecture", record.architecture}, {"compiler", record.compiler}, {"kernels", kernels}};
}

// Rows with a stack or spills: they fail the command.
int print_records(bool json) {
  int spilling = 0;
  Json all = Json::array();
  for (const contract::LimitsRecord& record : contract::built_in_limits()) {
    if (!json) fmt::print("{}, nvcc {}\n", record.architecture, record.compiler);
    for (const contract::KernelLimits& one : record.kernels) {
      const bool spills = one.stack + one.spill_stores + one.spill_loads > 0;
      spilling += spills ? 1 : 0;
      if (!json)
        fmt::print("  {:>3} registers {:>6} B shared  {} {}{}\n", one.registers, one.shared, one.source, one.kernel,
                   spills ? "  SPILLS" : "");
    }
    all.push_back(to_json(record));
  }
  if (json) fmt::print("{}\n", Json{{"spilling", spilling}, {"records", all}}.dump());
  return spilling > 0 ? 1 : 0;
}

// The program's own kernels on this card beside its record.
int compare_limits(Backend& backend, bool json) {
  auto loaded = contract::loaded_kernels(backend);
  if (!loaded) return fail(loaded.status());
  const contract::LimitsRecord* record = nullptr;
  for (const contract::LimitsRecord& one : contract::built_in_limits())
    if (one.architecture == loaded->architecture) record = &one;
  if (record == nullptr)
    return fail(Status::error("no record of {}; make it with tools/kernel_limits.py --write", loaded->architecture));
  const contract::LimitsComparison result = contract::compare(*loaded, *record);
  if (json) {
    fmt::print("{}\n", Json{{"architecture", loaded->architecture},
                            {"compared", result.compared},
                            {"unknown", result.unknown},
                            {"wrong", result.wrong},
                            {"notes", result.notes}}
                           .dump());
  } else {
    for (const std::string& sentence : result.notes) fmt::print("{}\n", sentence);
    for (const std::string& sentence : result.wrong) fmt::print("WRONG: {}\n", sentence);
    fmt::print("{}: {} kernels of this program beside the record, {} wrong\n", loaded->architecture, result.compared,
               result.wrong.size());
  }
  return result.wrong.empty() ? 0 : 1;
}

int limits(const ContractCommand& command) {
  const std::string device = command.device.empty() ? config().device.value_or(default_device()) : command.device;
  if (device == "cpu") return print_records(command.json);
  auto backend = backend_of(command);
  if (!backend) return fail(backend.status());
  return compare_limits(**backend, command.json);
}

CLI::App* add(CLI::App& app, const char* name, const char* sentence, const std::shared_ptr<ContractCommand>& command,
              int (*run)(const ContractCommand&), int& exit_status) {
  auto* sub = app.add_subcommand(name, sentence);
  sub->add_option("--kernel", command->kernels, "Kernels whose names match: * and ? stand for any")
      ->capture_default_str();
  sub->add_flag("--json", command->json, "Print one JSON value");
  sub->callback([command, run, &exit_status] { exit_status = run(*command); });
  return sub;
}

void add_device(CLI::App& sub, ContractCommand& command) {
  sub.add_option("--device", command.device, "cpu, cuda or cuda:NUMBER (default: a GPU if one is there)");
  sub.add_option("--threads", command.threads, "Threads; 0: one for each core")->capture_default_str();
  sub.add_option("--act", command.act,
                 "Activations of quantised linears: int8, bf16 or f32 (default: int8 on the CPU)");
  sub.add_option("--prompt-act", command.prompt_act, "Another arithmetic: linears are then checked as prompts' (int8)");
}

void add_cases(CLI::App& sub, ContractCommand& command) {
  sub.add_option("--cases", command.cases, "A file of cases instead of those that the program carries");
}

void add_selection(CLI::App& sub, ContractCommand& command) {
  add_cases(sub, command);
  sub.add_flag("--full", command.full, "The large cases too");
  sub.add_flag("--smallest", command.smallest, "The first case of each kernel alone");
}

}  // namespace

void add_contract(CLI::App& app, int& exit_status) {
  auto command = std::make_shared<ContractCommand>();
  auto* sub = app.add_subcommand("contract", "The kernel contract: every kernel against float64 and against itself");
  sub->require_subcommand(1);
  add_cases(*add(*sub, "list", "Kernels, their cases, gates and planted faults", command, list, exit_status), *command);
  auto* check_sub =
      add(*sub, "check", "Each kernel through its gates; exit status 1 if one is red", command, check, exit_status);
  add_device(*check_sub, *command), add_selection(*check_sub, *command);
  auto* limits_sub =
      add(*sub, "limits", "Registers, stack and spills: the records; on a card, its own kernels beside them", command,
          limits, exit_status);
  limits_sub->add_option("--device", command->device, "cpu: print the records; cuda or cuda:NUMBER: compare with them");
  auto* bench_sub =
      add(*sub, "bench", "Times of the cases beside what bytes and operations need", command, bench, exit_status);
  add_device(*bench_sub, *command), add_selection(*bench_sub, *command);
}

}  // namespace steadfast
