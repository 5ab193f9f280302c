// verify: the promise, tested to the bit on this machine and model; exit status 1 if anything differs.
#include "verify/verify.h"

#include "model_options.h"

namespace steadfast {
namespace {

struct VerifyCommand {
  ModelOptions model;
  bool quick = false, full = false, json = false;
};

int run(const VerifyCommand& command) {
  if (command.quick && command.full) return misuse("give --quick or --full, not both");
  auto path = resolve_model(command.model.model);
  if (!path) return fail(path.status());
  auto base = command.model.load_options();
  if (!base) return fail(base.status());
  VerifyOptions options;
  options.full = command.full;
  if (!command.json) options.progress = [](const std::string& what) { fmt::print(stderr, "{} ...\n", what); };
  auto table = verify(*path, *base, options);
  if (!table) return fail(table.status());
  int differing = 0;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  if (!command.json) fmt::print("{:<72} {:>6} {:>6} {:>9}\n", "equal to the bit", "cases", "equal", "differing");
  for (const Equality& row : *table) {
    differing += row.differing;
    json.push_back({{"name", row.name},
                    {"cases", row.cases},
                    {"equal", row.cases - row.differing},
                    {"differing", row.differing},
                    {"first", row.first}});
    if (command.json) continue;
    fmt::print("{:<72} {:>6} {:>6} {:>9}\n", row.name, row.cases, row.cases - row.differing, row.differing);
    if (row.differing > 0) fmt::print("    {}\n", row.first);
  }
  if (command.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"differing", differing}, {"equalities", json}}.dump());
  else
    fmt::print("{}\n",
               differing == 0 ? "the row law holds here" : "THE ROW LAW IS BROKEN HERE: please report this table");
  return differing == 0 ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, int& exit_status) {
  auto command = std::make_shared<VerifyCommand>();
  auto* sub = app.add_subcommand("verify", "The row law's equalities, tested to the bit on this machine");
  command->model.add_to(*sub);
  sub->add_flag("--quick", command->quick, "About a minute on a small model (the default)");
  sub->add_flag("--full", command->full, "More streams, longer prompts and replies");
  sub->add_flag("--json", command->json, "Print one JSON object");
  sub->callback([command, &exit_status] { exit_status = run(*command); });
}

}  // namespace steadfast
