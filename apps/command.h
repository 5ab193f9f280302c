// A subcommand of the program: registers its options on the command line, then runs. One file a subcommand.
#pragma once

#include <CLI/CLI.hpp>

#include "base/status.h"

namespace steadfast {

// Adds the subcommand to `app`; its callback stores the exit status (0 done, 1 failed, 2 wrong usage) in `exit_status`.
void add_tokenize(CLI::App& app, int& exit_status);
void add_detokenize(CLI::App& app, int& exit_status);
void add_template(CLI::App& app, int& exit_status);
void add_pull(CLI::App& app, int& exit_status);
void add_generate(CLI::App& app, int& exit_status);
void add_score(CLI::App& app, int& exit_status);
void add_chat(CLI::App& app, int& exit_status);
void add_info(CLI::App& app, int& exit_status);
void add_verify(CLI::App& app, int& exit_status);
void add_serve(CLI::App& app, int& exit_status);
void add_convert(CLI::App& app, int& exit_status);
void add_bench(CLI::App& app, int& exit_status);
void add_contract(CLI::App& app, int& exit_status);

// Prints "steadfast: sentence" to standard error and returns 1.
int fail(const Status& status);
// The same for wrong usage (options that contradict, an empty prompt): returns 2.
int misuse(const std::string& sentence);

// A folder or .gguf file as given, else a name that `pull` has stored; an error says what exists and what to do.
Result<std::filesystem::path> resolve_model(const std::string& model);
// Whether resolve_model() takes `model` for a stored name.
bool is_stored_name(const std::string& model);

}  // namespace steadfast
