// Running other programs: exit statuses, signals, what is not there; no shell.
#include "store/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace steadfast {
namespace {

TEST(Process, GivesTheExitStatus) {
  EXPECT_EQ(*run_program({"true"}), 0);
  EXPECT_EQ(*run_program({"sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(*run_program({"sh", "-c", "kill -9 $$"}), 128 + 9);
}

TEST(Process, SaysWhatCannotBeStarted) {
  const auto absent = run_program({"steadfast-no-such-program"});
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.message(), testing::HasSubstr("steadfast-no-such-program cannot be started (No such file"));
}

TEST(Process, NeedsNoShell) {
  const test::TempFolder folder;
  const auto path = folder.path() / "a b;$(touch c)'\"";
  EXPECT_EQ(*run_program({"touch", path.string()}), 0);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(Process, PrintsToStandardError) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(*run_program({"echo", "hello"}), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hello\n");
}

}  // namespace
}  // namespace steadfast
