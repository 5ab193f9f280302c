// bench: how fast, and whether what must be equal is. Each kind has its file.
#include "bench_command.h"
#include "command.h"

namespace steadfast {

void add_bench(CLI::App& app, int& exit_status) {
  auto* bench = app.add_subcommand("bench", "Speed: of one stream, of many at once, of resumed prompts");
  bench->require_subcommand(1);
  add_bench_stream(*bench, exit_status);
  add_bench_concurrent(*bench, exit_status);
  add_bench_prefix(*bench, exit_status);
}

}  // namespace steadfast
