// The kinds of `bench`, one file each: they add themselves below the command `bench`.
#pragma once

#include <CLI/CLI.hpp>

namespace steadfast {

void add_bench_stream(CLI::App& bench, int& exit_status);      // decode, prompt
void add_bench_concurrent(CLI::App& bench, int& exit_status);  // concurrent
void add_bench_prefix(CLI::App& bench, int& exit_status);      // prefix

}  // namespace steadfast
