// convert: a GGUF file or a Hugging Face folder to an MLX-affine folder.
#include "convert/convert.h"

#include "model_options.h"

namespace steadfast {
namespace {

struct ConvertCommand {
  std::string in, out;
  ConvertOptions options;
  bool json = false;
};

nlohmann::ordered_json to_json(const ConvertCommand& command, const ConvertReport& report) {
  return {{"in", command.in},
          {"out", command.out},
          {"tensors", report.tensors},
          {"shards", report.shards},
          {"quantised", report.quantised},
          {"kept", report.kept},
          {"bytes", report.bytes},
          {"bits_per_weight", report.bits_per_weight},
          {"notes", report.notes}};
}

int run(ConvertCommand& command) {
  if (command.options.bits && !command.options.recipe.empty())
    return misuse("a recipe chooses the bits; give --bits or --recipe");
  auto path = resolve_model(command.in);
  if (!path) return fail(path.status());
  ProgressBar bar("converting");
  command.options.progress = [&bar](int done, int total) { bar.show(done, total); };
  auto report = convert_model(*path, command.out, command.options);
  bar.clear();
  if (!report) return fail(report.status());
  if (command.json) {
    fmt::print("{}\n", to_json(command, *report).dump());
    return 0;
  }
  for (const std::string& note : report->notes) fmt::print(stderr, "steadfast: {}\n", note);
  fmt::print(
      "{}: {} tensors in {} file{}, {:.1f} MB, {:.2f} bits a weight; {} matrices quantised, {} kept as they were\n",
      command.out, report->tensors, report->shards, report->shards == 1 ? "" : "s",
      static_cast<double>(report->bytes) / 1e6, report->bits_per_weight, report->quantised, report->kept);
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, int& exit_status) {
  auto command = std::make_shared<ConvertCommand>();
  auto* sub = app.add_subcommand("convert", "A GGUF file or a Hugging Face folder to an MLX-affine folder");
  sub->add_option("IN", command->in, "Unquantised folder, .gguf file, or a name that `pull` has stored")->required();
  sub->add_option("OUT", command->out, "Folder that does not exist yet")->required();
  sub->add_option("--bits", command->options.bits,
                  "2, 3, 4, 5, 6 or 8 (folders: 4; GGUF: every tensor stays as it is)");
  sub->add_option("--group", command->options.group, "Columns that share a scale: 32, 64 or 128 (64)");
  sub->add_option("--recipe", command->options.recipe,
                  "JSON file of patterns and bits, or mixed_2_6, mixed_3_4, mixed_3_6, mixed_4_6");
  sub->add_flag("--requantise", command->options.requantise, "Give a GGUF file's quantised tensors new bits too");
  sub->add_flag("--json", command->json, "Print one JSON object");
  sub->callback([command, &exit_status] { exit_status = run(*command); });
}

}  // namespace steadfast
