// The command line: `steadfast COMMAND ...`. Results go to standard output, everything else to standard error.
#include "command.h"

int main(int argc, char** argv) {
  CLI::App app{"Steadfast: a language-model engine whose reply is a function of the request", "steadfast"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("steadfast ") + STEADFAST_VERSION);
  int exit_status = 0;
  steadfast::add_generate(app, exit_status);
  steadfast::add_chat(app, exit_status);
  steadfast::add_serve(app, exit_status);
  steadfast::add_score(app, exit_status);
  steadfast::add_tokenize(app, exit_status);
  steadfast::add_detokenize(app, exit_status);
  steadfast::add_template(app, exit_status);
  steadfast::add_verify(app, exit_status);
  steadfast::add_info(app, exit_status);
  steadfast::add_pull(app, exit_status);
  steadfast::add_convert(app, exit_status);
  steadfast::add_bench(app, exit_status);
  steadfast::add_contract(app, exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return exit_status;
}
