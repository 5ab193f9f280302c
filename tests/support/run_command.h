// Runs a command of the program inside a test, as the command line would: exit status, standard output and error.
#pragma once

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace steadfast::test {

struct Outcome {
  int status;
  std::string out, err;
};

// add: functions of apps/command.h that add the commands under test.
inline Outcome run_command(const std::vector<void (*)(CLI::App&, int&)>& add, std::vector<std::string> words) {
  CLI::App app{"", "steadfast"};
  int status = 0;
  for (auto* command : add) command(app, status);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    status = app.exit(error) == 0 ? 0 : 2;
  }
  return {status, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

}  // namespace steadfast::test
