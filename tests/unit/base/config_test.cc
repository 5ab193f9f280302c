// config(): each variable of the environment ends in its member, empty counts as unset, and it is read once.
// Every case runs in a process of its own (a death test), since the environment is read once a process.
#include "base/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

namespace steadfast {
namespace {

struct Variable {
  const char* name;
  const char* value;
};

// Leaves only these variables of ours set, then exits with 0 when `holds` agrees.
[[noreturn]] void exit_by(std::initializer_list<Variable> variables, const std::function<bool(const Config&)>& holds) {
  for (const char* name : {"STEADFAST_HOME", "XDG_DATA_HOME", "HOME", "STEADFAST_ISA", "STEADFAST_LOG", "NO_COLOR",
                           "HF_ENDPOINT", "HF_TOKEN"}) {
    unsetenv(name);
  }
  for (const Variable& variable : variables) setenv(variable.name, variable.value, 1);
  std::exit(holds(config()) ? 0 : 1);
}

class ConfigDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ConfigDeathTest, HomeComesFromItsVariableThenTheDataFolderThenTheHomeFolder) {
  const testing::ExitedWithCode done(0);
  EXPECT_EXIT(exit_by({{"STEADFAST_HOME", "/a"}, {"XDG_DATA_HOME", "/b"}, {"HOME", "/c"}},
                      [](const Config& c) { return c.home == "/a" && c.models() == "/a/models"; }),
              done, "");
  EXPECT_EXIT(
      exit_by({{"XDG_DATA_HOME", "/b"}, {"HOME", "/c"}}, [](const Config& c) { return c.home == "/b/steadfast"; }),
      done, "");
  EXPECT_EXIT(exit_by({{"HOME", "/c"}}, [](const Config& c) { return c.home == "/c/.local/share/steadfast"; }), done,
              "");
  EXPECT_EXIT(exit_by({{"STEADFAST_HOME", ""}}, [](const Config& c) { return c.home == "./.local/share/steadfast"; }),
              done, "");
}

TEST_F(ConfigDeathTest, OtherVariablesAndTheirDefaults) {
  const testing::ExitedWithCode done(0);
  EXPECT_EXIT(exit_by({}, [](const Config& c) { return !c.isa && c.log_level == "info" && !c.no_color; }), done, "");
  EXPECT_EXIT(exit_by({{"STEADFAST_ISA", "avx2"}, {"STEADFAST_LOG", "debug"}, {"NO_COLOR", "1"}},
                      [](const Config& c) { return c.isa == "avx2" && c.log_level == "debug" && c.no_color; }),
              done, "");
}

TEST_F(ConfigDeathTest, TheHub) {
  const testing::ExitedWithCode done(0);
  EXPECT_EXIT(exit_by({}, [](const Config& c) { return c.hf_endpoint == "https://huggingface.co" && !c.hf_token; }),
              done, "");
  EXPECT_EXIT(exit_by({{"HF_ENDPOINT", "http://127.0.0.1:8000//"}, {"HF_TOKEN", "t"}},
                      [](const Config& c) { return c.hf_endpoint == "http://127.0.0.1:8000" && c.hf_token == "t"; }),
              done, "");
}

TEST_F(ConfigDeathTest, IsReadOnce) {
  EXPECT_EXIT(exit_by({{"STEADFAST_LOG", "warn"}},
                      [](const Config&) {
                        setenv("STEADFAST_LOG", "error", 1);
                        return config().log_level == "warn";
                      }),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace steadfast
