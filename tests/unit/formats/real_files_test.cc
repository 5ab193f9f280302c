// The readers on files that other programs wrote: the golden models (safetensors).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "formats/safetensors.h"

namespace steadfast {
namespace {

const std::filesystem::path kShared = std::filesystem::path(STEADFAST_SOURCE_DIR) / "../shared";

class GoldenModel : public testing::TestWithParam<const char*> {};

TEST_P(GoldenModel, OpensAsFileAndAsFolder) {
  const auto folder = kShared / "data/golden" / GetParam();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the golden models are not in ../shared";
  const auto file = SafetensorsFile::open(folder / "model.safetensors");
  ASSERT_TRUE(file) << file.message();
  const auto whole = SafetensorsFolder::open(folder);
  ASSERT_TRUE(whole) << whole.message();
  ASSERT_FALSE((*file)->names().empty());
  EXPECT_EQ((*file)->names(), (*whole)->names());
  for (const auto& name : (*file)->names()) {
    const TensorView* tensor = (*whole)->find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->data.size(), tensor->elements() * info(tensor->dtype).block_bytes) << name;
    (*whole)->will_need(*tensor);
    const std::vector<std::byte> before(tensor->data.begin(), tensor->data.end());
    (*whole)->release(*tensor);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), tensor->data.begin())) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel, testing::Values("hybrid-a", "llama-a", "qwen2-a", "qwen3-a"),
                         [](const auto& model) {
                           std::string name = model.param;
                           name.erase(name.find('-'));
                           return name;
                         });

}  // namespace
}  // namespace steadfast
