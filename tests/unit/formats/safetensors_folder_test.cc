// Folders of shards: which files belong to the model, and every way an index can lie.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/safetensors.h"
#include "support/safetensors_builder.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

using test::Bytes;
using test::SafetensorsBuilder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kIndex = "model.safetensors.index.json";

class SafetensorsFolderTest : public testing::Test {
 protected:
  // A shard whose tensors hold one byte each, the first letter of their name.
  void shard(const std::string& file, const std::vector<std::string>& tensors) {
    SafetensorsBuilder builder;
    for (const auto& name : tensors) builder.add_tensor(name, DType::kU8, {1}, Bytes{static_cast<std::byte>(name[0])});
    folder_.write(file, builder.build());
  }
  void index(std::string_view weight_map) {
    folder_.write(kIndex,
                  fmt::format(R"({{"metadata":{{"total_size":3,"more":[{{}}]}},"weight_map":{}}})", weight_map));
  }
  std::string refusal() {
    const auto opened = SafetensorsFolder::open(folder_.path());
    EXPECT_THAT(opened.message(), testing::Not(HasSubstr("\n")));
    return opened ? "(accepted)" : opened.message();
  }

  test::TempFolder folder_;
};

TEST_F(SafetensorsFolderTest, AnIndexJoinsItsShards) {
  shard("model-00001-of-00002.safetensors", {"b", "a"});
  shard("model-00002-of-00002.safetensors", {"c"});
  shard("model.safetensors", {"other"});
  index(R"({"c":"model-00002-of-00002.safetensors","a":"model-00001-of-00002.safetensors"})");
  const auto opened = SafetensorsFolder::open(folder_.path());
  ASSERT_TRUE(opened) << opened.message();
  EXPECT_THAT((*opened)->names(), ElementsAre("b", "a", "c")) << "shards by name, tensors in file order";
  for (const char* name : {"a", "b", "c"}) {
    const TensorView* tensor = (*opened)->find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->data[0], static_cast<std::byte>(name[0]));
    (*opened)->release(*tensor);
    (*opened)->will_need(*tensor);
  }
  EXPECT_EQ((*opened)->find("other"), nullptr);
}

TEST_F(SafetensorsFolderTest, WithoutIndexOneFileOrAllShards) {
  EXPECT_THAT(refusal(), HasSubstr("holds no model.safetensors"));
  shard("model-2.safetensors", {"b"});
  shard("model-1.safetensors", {"a"});
  shard("adapter.safetensors", {"x"});
  auto opened = SafetensorsFolder::open(folder_.path());
  ASSERT_TRUE(opened) << opened.message();
  EXPECT_THAT((*opened)->names(), ElementsAre("a", "b"));
  shard("model.safetensors", {"whole"});
  opened = SafetensorsFolder::open(folder_.path());
  ASSERT_TRUE(opened) << opened.message();
  EXPECT_THAT((*opened)->names(), ElementsAre("whole"));
}

TEST_F(SafetensorsFolderTest, FollowsSymbolicLinksOfACache) {
  shard("blobs/abc", {"a"});
  std::filesystem::create_directory(folder_.path() / "snapshot");
  std::filesystem::create_symlink("../blobs/abc", folder_.path() / "snapshot/model.safetensors");
  EXPECT_TRUE(SafetensorsFolder::open(folder_.path() / "snapshot"));
}

TEST_F(SafetensorsFolderTest, RefusesWhatIsNotAFolder) {
  EXPECT_THAT(SafetensorsFolder::open(folder_.path() / "absent").message(), HasSubstr("is not a folder"));
  EXPECT_THAT(SafetensorsFolder::open(folder_.write("file", "x")).message(), HasSubstr("is not a folder"));
}

TEST_F(SafetensorsFolderTest, ATensorInTwoShards) {
  shard("model-1.safetensors", {"a", "same"});
  shard("model-2.safetensors", {"b", "same"});
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("'same'"), HasSubstr("model-1.safetensors"), HasSubstr("model-2.safetensors")));
  index(R"({"a":"model-1.safetensors","b":"model-2.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("'same' is in two shards"));
}

TEST_F(SafetensorsFolderTest, ShardsMissingDamagedOrWithoutTheirTensor) {
  shard("one.safetensors", {"a"});
  shard("two.safetensors", {"b"});
  index(R"({"a":"one.safetensors","b":"absent.safetensors"})");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("absent.safetensors"), HasSubstr("no such file")));
  index(R"({"a":"one.safetensors","b":"one.safetensors"})");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("'b'"), HasSubstr("does not hold it")));
  index(R"({"a":"two.safetensors","b":"one.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("does not hold it"));
  folder_.write("two.safetensors", "damaged file");
  index(R"({"a":"one.safetensors","b":"two.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("two.safetensors"));
  std::filesystem::remove(folder_.path() / "two.safetensors");
  std::filesystem::create_symlink("two.safetensors", folder_.path() / "two.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("form a loop"));
  std::filesystem::remove(folder_.path() / "two.safetensors");
  std::filesystem::create_directory(folder_.path() / "two.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("is a folder"));
}

TEST_F(SafetensorsFolderTest, ShardNamesThatLeaveTheFolder) {
  shard("a.safetensors", {"a"});
  std::filesystem::create_directory(folder_.path() / "inner");
  for (const char* name : {"../a.safetensors", "/a.safetensors", "inner/../a.safetensors", "./a.safetensors", "..", ".",
                           "", "inner\\\\a.safetensors", "a.safetensors\\u0000", "a.safetensors\\n", ".safetensors",
                           "..safetensors", "a.bin", "model.safetensors.index.json", "C:a.safetensors/"}) {
    index(fmt::format(R"({{"a":"{}"}})", name));
    EXPECT_THAT(refusal(), HasSubstr("not the plain name")) << name;
  }
  index(R"({"a":"a.safetensors"})");
  EXPECT_EQ(refusal(), "(accepted)");
}

TEST_F(SafetensorsFolderTest, IndexesThatAreNotIndexes) {
  shard("a.safetensors", {"a"});
  for (const char* text :
       {"[]", "1", "\"a\"", R"({"weight_map":[]})", R"({"weight_map":"a"})", R"({"weight_map":{"a":1}})",
        R"({"weight_map":{"a":{"b":"a.safetensors"}}})", R"({"weight_map":{"a":["a.safetensors"]}})"}) {
    folder_.write(kIndex, text);
    EXPECT_THAT(refusal(), HasSubstr("is not an index")) << text;
  }
  for (const char* text : {"{}", R"({"weight_map":{}})", R"({"metadata":{"weight_map":{"a":"a.safetensors"}}})"}) {
    folder_.write(kIndex, text);
    EXPECT_THAT(refusal(), HasSubstr("no weight_map")) << text;
  }
  folder_.write(kIndex, R"({"weight_map":{"a":"a.safetensors","a":"a.safetensors"}})");
  EXPECT_THAT(refusal(), HasSubstr("there twice"));
  folder_.write(kIndex, R"({"weight_map":{"a":"a.safetensors"},"weight_map":{}})");
  EXPECT_THAT(refusal(), HasSubstr("there twice"));
  folder_.write(kIndex, R"({"weight_map":{"a":"a.safeten)");
  EXPECT_THAT(refusal(), HasSubstr("not JSON"));
  folder_.write(kIndex, R"({"metadata":)" + std::string(100'000, '['));
  EXPECT_THAT(refusal(), HasSubstr("nested deeper"));
  folder_.write(kIndex, "");
  EXPECT_THAT(refusal(), HasSubstr("is empty"));
  std::filesystem::remove(folder_.path() / kIndex);
  std::filesystem::create_symlink("gone", folder_.path() / kIndex);
  EXPECT_THAT(refusal(), HasSubstr("no such file")) << "a dangling index is not ignored";
}

}  // namespace
}  // namespace steadfast
