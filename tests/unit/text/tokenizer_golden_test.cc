// Equality with Hugging Face's tokenizers: a small tokenizer of our own in every variant (tools/goldens), Qwen3's
// vocabulary with both patterns, and SmolLM2's from a GGUF file.
#include <gtest/gtest.h>

#include "base/config.h"
#include "formats/gguf.h"
#include "sample.h"

namespace steadfast {
namespace {

using Ids = std::vector<TokenId>;

TEST(TokenizerGolden, EveryVariantOfTheSample) {
  const auto goldens = test::read_json(test::golden_path("tokenizer_goldens.json"));
  for (const auto& variant : goldens["variants"]) {
    SCOPED_TRACE(variant["name"]);
    auto json = test::sample_json();
    json.merge_patch(variant["patch"]);
    const Tokenizer tokenizer = test::tokenizer_of(json);
    for (const auto& item : variant["cases"]) {
      const auto ids = tokenizer.encode(item[0].get<std::string>());
      EXPECT_EQ(ids, item[1].get<Ids>()) << item[0];
      if (item.size() == 2) continue;
      EXPECT_EQ(tokenizer.decode(ids, false), item[2].get<std::string>()) << item[0];
      EXPECT_EQ(tokenizer.decode(ids, true), item[3].get<std::string>()) << item[0];
    }
  }
  EXPECT_EQ(goldens["variants"].size(), 21u);
}

void check_qwen(const Tokenizer& tokenizer, const char* ids_key) {
  const auto goldens = test::read_json(test::shared_path("golden/tokenizer_qwen3.json"));
  EXPECT_GT(goldens.size(), 200u);
  for (const auto& item : goldens) {
    const auto ids = tokenizer.encode(item["text"].get<std::string>());
    EXPECT_EQ(ids, item[ids_key].get<Ids>()) << item["text"];
    EXPECT_EQ(tokenizer.decode(ids, false), item["decoded"].get<std::string>());
  }
}

class QwenGolden : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = test::shared_path("tokenizer_qwen3");
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "Qwen3's tokenizer is not at " << folder_;
  }
  // Both patterns of model-spec 6.2; from this file the second one is made.
  static void use_marks(nlohmann::json& json) {
    auto& regex = json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"].get_ref<std::string&>();
    const auto replace = [&](const std::string& from, const std::string& to) {
      const auto at = regex.find(from);
      ASSERT_NE(at, std::string::npos);
      regex.replace(at, from.size(), to);
    };
    replace("?\\p{L}+", "?[\\p{L}\\p{M}]+");
    replace("[^\\s\\p{L}\\p{N}]+", "[^\\s\\p{L}\\p{M}\\p{N}]+");
  }
  std::string folder_;
};

TEST_F(QwenGolden, FromItsFolder) {
  const auto tokenizer = Tokenizer::from_folder(folder_);
  ASSERT_TRUE(tokenizer) << tokenizer.message();
  check_qwen(*tokenizer, "ids");
  EXPECT_EQ(tokenizer->added_token("<|im_end|>"), 151645);
  EXPECT_TRUE(tokenizer->is_special(151645));
  EXPECT_FALSE(tokenizer->is_special(tokenizer->added_token("</think>")));
  EXPECT_EQ(tokenizer->vocab_size(), 151669u);
}

TEST_F(QwenGolden, WithMarks) {
  auto json = test::read_json(folder_ + "/tokenizer.json");
  use_marks(json);
  check_qwen(test::tokenizer_of(json), "ids_qwen3_5");
}

TEST_F(QwenGolden, FromGguf) {
  const auto json = test::read_json(folder_ + "/tokenizer.json");
  for (const auto& [pre, key] : {std::pair("qwen2", "ids"), std::pair("qwen35", "ids_qwen3_5")}) {
    const auto bytes = test::gguf_of(json, pre).build();
    const auto file = GgufFile::from_bytes(bytes, "qwen.gguf");
    ASSERT_TRUE(file) << file.message();
    const auto tokenizer = Tokenizer::from_gguf(**file);
    ASSERT_TRUE(tokenizer) << tokenizer.message();
    check_qwen(*tokenizer, key);
  }
}

TEST(SmolLm2Golden, FromTheStoredModel) {
  const auto folder = config().models() / "smollm2";
  std::filesystem::path path;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".gguf") path = entry.path();
  }
  if (path.empty()) GTEST_SKIP() << "no GGUF file in " << folder << ": `steadfast pull smollm2` fetches one";
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file) << file.message();
  const auto tokenizer = Tokenizer::from_gguf(**file);
  ASSERT_TRUE(tokenizer) << tokenizer.message();
  const std::pair<const char*, Ids> vectors[] = {
      {"Hello, we can use", {19556, 28, 392, 416, 722}},
      {"The capital of France is", {504, 3575, 282, 4649, 314}},
      {"Hello world! 123", {19556, 905, 17, 216, 33, 34, 35}},
      {"Café déjà vu.", {51, 1939, 2756, 32564, 90, 16739, 386, 101, 30}},
      {"  multiple   spaces", {216, 2701, 256, 5600}},
      {"\n", {198}},
      {"<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
       "<|im_start|>user\nhello world<|im_end|>\n<|im_start|>assistant\n",
       {1,   9690,  198,  2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28,  7018, 411,
        407, 19712, 8182, 2,    198, 1,   4093, 198,  28120, 905,  2,    198, 1,     520, 9531, 198}},
  };
  for (const auto& [text, ids] : vectors) {
    EXPECT_EQ(tokenizer->encode(text), ids) << text;
    EXPECT_EQ(tokenizer->decode(ids, false), text);
  }
}

}  // namespace
}  // namespace steadfast
