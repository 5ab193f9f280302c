// The readers on files that other programs wrote: the golden models (safetensors) and the default model (GGUF).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config.h"
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

TEST(DefaultModel, Opens) {
  const auto path = config().models() / "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the default model is not stored: steadfast pull smollm2";
  const auto opened = GgufFile::open(path);
  ASSERT_TRUE(opened) << opened.message();
  const GgufFile& file = **opened;
  EXPECT_EQ(file.keys().size(), 33u);
  EXPECT_EQ(file.names().size(), 272u);
  EXPECT_EQ(file.value("general.architecture")->as_string(), "llama");
  EXPECT_EQ(file.value("llama.attention.head_count_kv")->as_int(), 3);
  EXPECT_EQ(file.value("llama.rope.freq_base")->as_float(), 100000);
  EXPECT_EQ(file.value("tokenizer.ggml.tokens")->as_array()->size(), 49152u);
  EXPECT_EQ((*file.value("tokenizer.ggml.tokens")->as_array())[1].as_string(), "<|im_start|>");
  const TensorView* up = file.find("blk.29.ffn_up.weight");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->dtype, DType::kQ4_1);
  EXPECT_THAT(up->shape, testing::ElementsAre(1536, 576));
}

}  // namespace
}  // namespace steadfast
