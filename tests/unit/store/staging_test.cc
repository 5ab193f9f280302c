// Staging: what is kept and what is not between pulls, the lock, and the install in one step.
#include "store/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_folder.h"

namespace steadfast {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class StagingTest : public testing::Test {
 protected:
  Result<Staging> open(const std::string& source) { return Staging::open(store_, "org/name", source); }
  static void put(const Staging& staging, const std::string& name, const std::string& text) {
    std::ofstream(staging.folder() / name) << text;
  }

  test::TempFolder folder_;
  Store store_{folder_.path() / "models"};
};

TEST_F(StagingTest, KeepsWhatTheSameSourceLeft) {
  const fs::path kept = [&] {
    const auto staging = open("a");
    EXPECT_TRUE(staging) << staging.message();
    put(*staging, "part", "x");
    return staging->folder() / "part";
  }();
  EXPECT_TRUE(open("a"));
  EXPECT_TRUE(fs::exists(kept));
  EXPECT_TRUE(open("b"));
  EXPECT_FALSE(fs::exists(kept));
  EXPECT_TRUE(store_.list().empty()) << "what is staged is not stored";
}

TEST_F(StagingTest, ASecondPullOfTheNameWaitsForNobody) {
  const auto first = open("a");
  ASSERT_TRUE(first);
  EXPECT_THAT(open("a").message(), HasSubstr("another pull of 'org/name' is running"));
  EXPECT_TRUE(Staging::open(store_, "org/other", "a")) << "another name may go on";
}

TEST_F(StagingTest, InstallsInOneStepAndReplaces) {
  for (const std::string text : {"old", "new!"}) {
    const auto staging = open(text);
    ASSERT_TRUE(staging) << staging.message();
    put(*staging, "model.gguf", text);
    if (text == "old") put(*staging, "only-in-old", text);
    const Status installed = staging->install({text, {{"model.gguf", text.size(), "digest"}}});
    ASSERT_TRUE(installed) << installed.message();
    EXPECT_FALSE(fs::exists(staging->folder()));
    EXPECT_EQ(test::read_text(store_.folder("org/name") / "model.gguf"), text);
    EXPECT_EQ(read_record(store_.folder("org/name"))->source, text);
  }
  EXPECT_FALSE(fs::exists(store_.folder("org/name") / "only-in-old"));
  EXPECT_FALSE(fs::exists(store_.folder("org/name") / ".source"));
}

TEST_F(StagingTest, AMissingFileIsNotInstalled) {
  const auto staging = open("a");
  ASSERT_TRUE(staging);
  EXPECT_THAT(staging->install({"a", {{"absent", 1, ""}}}).message(), HasSubstr("absent"));
  EXPECT_FALSE(fs::exists(store_.folder("org/name")));
}

TEST_F(StagingTest, SpaceIsAskedForBefore) {
  const auto staging = open("a");
  ASSERT_TRUE(staging);
  EXPECT_TRUE(staging->need_space(1));
  EXPECT_THAT(staging->need_space(std::uint64_t{1} << 62).message(), HasSubstr("STEADFAST_HOME"));
}

TEST_F(StagingTest, AStoreThatCannotBeMadeIsSaid) {
  const Store blocked(folder_.write("file", "x") / "models");
  EXPECT_THAT(Staging::open(blocked, "name", "a").message(), HasSubstr("cannot be created"));
}

}  // namespace
}  // namespace steadfast
