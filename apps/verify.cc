// verify: the promise, tested to the bit on this machine and model; exit status 1 if anything differs. With --plant a
// fault is put into the engine first: exit status 0 if the equalities caught it, 1 if they missed it, 2 if this model
// cannot carry it.
#include "verify/verify.h"

#include <unistd.h>

#include "model_options.h"

namespace steadfast {
namespace {

constexpr const char* kFooter =
    "Exit status: 0 all is equal, 1 something differs. With --plant: 0 the fault was caught, 1 it was missed, 2 this\n"
    "model cannot carry it. docs/verify.md says what each row of the table means.";

struct VerifyCommand {
  ModelOptions model;
  bool quick = false, full = false, json = false;
  std::string plant;
};

using Json = nlohmann::ordered_json;

Json to_json(const Difference& difference) {
  return {{"where", difference.where},
          {"what", difference.what},
          {"position", difference.position},
          {"distance", difference.distance}};
}

Json to_json(const Equality& row) {
  return {{"name", row.name},
          {"kv", row.kv},
          {"cases", row.cases},
          {"equal", row.cases - row.differing},
          {"differing", row.differing},
          {"rows", row.rows},
          {"replies", row.replies},
          {"seconds", row.seconds},
          {"first", row.first ? to_json(*row.first) : Json()},
          {"skipped", row.skipped}};
}

std::string sentence(const Difference& difference) {
  return fmt::format("{}: {}, first at position {}, distance {:.3g} there", difference.where, difference.what,
                     difference.position, difference.distance);
}

void print(const Verification& result) {
  constexpr auto kLine = "{:<52} {:<13} {:>6} {:>7} {:>7} {:>6} {:>9}\n";
  fmt::print(kLine, "equal to the bit", "cache", "cases", "rows", "replies", "equal", "differing");
  int cases = 0, differing = 0;
  for (const Equality& row : result.table) {
    cases += row.cases;
    differing += row.differing;
    fmt::print(kLine, row.name, row.kv, row.cases, row.rows, row.replies, row.cases - row.differing, row.differing);
    if (row.first) fmt::print("    {}\n", sentence(*row.first));
    if (!row.skipped.empty()) fmt::print("    not tested: {}\n", row.skipped);
  }
  fmt::print(kLine, "all", "", cases, result.rows(), result.replies(), cases - differing, differing);
  fmt::print("on {}\n{}\n", result.device,
             differing == 0 ? "the row law holds here" : "THE ROW LAW IS BROKEN HERE: please report this table");
}

// One line a check on a terminal.
VerifyOptions options_of(const VerifyCommand& command) {
  VerifyOptions options;
  options.full = command.full;
  if (::isatty(STDERR_FILENO) != 0)
    options.progress = [](const Equality& row) {
      fmt::print(stderr, "{:<52} {:>8.1f} s{}\n", row.name, row.seconds, row.differing > 0 ? "  DIFFERS" : "");
    };
  return options;
}

int check_law(const VerifyCommand& command, const std::filesystem::path& path, const LoadOptions& base) {
  auto result = verify(path, base, options_of(command));
  if (!result) return fail(result.status());
  const bool broken = result->first_differing() != nullptr;
  if (!command.json) {
    print(*result);
    return broken ? 1 : 0;
  }
  Json rows = Json::array();
  int differing = 0;
  for (const Equality& row : result->table) {
    rows.push_back(to_json(row));
    differing += row.differing;
  }
  const Json all = {{"device", result->device},
                    {"differing", differing},
                    {"rows", result->rows()},
                    {"replies", result->replies()},
                    {"equalities", rows}};
  fmt::print("{}\n", all.dump());
  return broken ? 1 : 0;
}

struct Planted {
  Json json;
  int status = 0;  // 0 caught, 1 missed, 2 cannot be carried
};

Result<Planted> check_plant(const VerifyCommand& command, const std::filesystem::path& path, const LoadOptions& base,
                            Fault fault) {
  VerifyOptions options = options_of(command);
  options.plant = fault;
  auto result = verify(path, base, options);
  if (!result) return result.status();
  const FaultInfo& about = info(fault);
  const Equality* caught = result->first_differing();
  Planted planted{{{"fault", about.name}, {"sentence", about.sentence}}, 0};
  if (!command.json) fmt::print("planted {} ({}): ", about.name, about.sentence);
  if (!result->cannot_carry.empty()) {
    planted.status = 2;
    planted.json["cannot_carry"] = result->cannot_carry;
    if (!command.json) fmt::print("cannot be carried: {}\n", result->cannot_carry);
  } else if (caught == nullptr) {
    planted.status = 1;
    planted.json["caught_by"] = nullptr;
    if (!command.json) fmt::print("MISSED\n");
  } else {
    planted.json["caught_by"] = to_json(*caught);
    if (!command.json) fmt::print("caught by \"{}\"\n    {}\n", caught->name, sentence(*caught->first));
  }
  return planted;
}

int list_faults(bool json) {
  Json list = Json::array();
  for (const FaultInfo& fault : all_faults()) {
    list.push_back({{"fault", fault.name}, {"sentence", fault.sentence}});
    if (!json) fmt::print("{:<16} {}\n", fault.name, fault.sentence);
  }
  if (json) fmt::print("{}\n", list.dump());
  return 0;
}

// One fault, or with "all" each in turn: then those that the model cannot carry do not count.
int check_plants(const VerifyCommand& command, const std::filesystem::path& path, const LoadOptions& base) {
  std::vector<Fault> faults;
  if (command.plant == "all") {
    for (const FaultInfo& fault : all_faults()) faults.push_back(fault.fault);
  } else {
    auto fault = parse_fault(command.plant);
    if (!fault) return misuse(fault.message());
    faults.push_back(*fault);
  }
  Json json = Json::array();
  int missed = 0, status = 0;
  for (const Fault fault : faults) {
    auto planted = check_plant(command, path, base, fault);
    if (!planted) return fail(planted.status());
    json.push_back(planted->json);
    status = planted->status;
    if (status == 1) ++missed;
  }
  if (command.json) fmt::print("{}\n", Json{{"missed", missed}, {"planted", json}}.dump());
  if (command.plant == "all") status = missed > 0 ? 1 : 0;
  return status;
}

int run(const VerifyCommand& command) {
  if (command.quick && command.full) return misuse("give --quick or --full, not both");
  if (command.plant == "list") return list_faults(command.json);
  auto path = resolve_model(command.model.model);
  if (!path) return fail(path.status());
  auto base = command.model.load_options();
  if (!base) return fail(base.status());
  return command.plant.empty() ? check_law(command, *path, *base) : check_plants(command, *path, *base);
}

}  // namespace

void add_verify(CLI::App& app, int& exit_status) {
  auto command = std::make_shared<VerifyCommand>();
  auto* sub = app.add_subcommand("verify", "The row law's equalities, tested to the bit on this machine");
  command->model.add_to(*sub);
  sub->add_flag("--quick", command->quick, "Seconds on a small model, a minute or more on a larger one (the default)");
  sub->add_flag("--full", command->full, "More streams, longer prompts, over 1,000 replies");
  sub->add_option("--plant", command->plant,
                  "Put a fault into the engine, which the equalities must catch: its name, all, or list");
  sub->add_flag("--json", command->json, "Print one JSON object");
  sub->footer(kFooter);
  sub->callback([command, &exit_status] { exit_status = run(*command); });
}

}  // namespace steadfast
