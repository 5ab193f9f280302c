// GGUF files become MLX folders that score to the bit as the file does, in every act mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/config.h"
#include "convert/convert.h"
#include "formats/gguf.h"
#include "models.h"
#include "quant/affine.h"

namespace steadfast {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr Act kActs[] = {Act::kInt8, Act::kBF16, Act::kF32};

DType mixed(const std::string& name) {
  if (name.find("attn_q") != name.npos || name.find("ffn_down") != name.npos) return DType::kQ4_0;
  if (name.find("attn_k") != name.npos || name.find("ffn_up") != name.npos) return DType::kQ4_1;
  if (name.find("ffn_gate") != name.npos) return DType::kF16;
  return name.find("attn_v") != name.npos ? DType::kF32 : DType::kQ8_0;
}

void expect_equal_logits(const fs::path& a, const fs::path& b) {
  for (const Act act : kActs)
    EXPECT_EQ(test::difference(test::logits_of(a, act), test::logits_of(b, act)), "equal") << to_string(act);
}

class Goldens : public ::testing::TestWithParam<const char*> {};

TEST_P(Goldens, ConvertWithoutLoss) {
  test::TempFolder folder;
  const auto file = test::write_gguf(folder, test::gguf_of_golden(GetParam(), mixed));
  const auto report = test::convert(file, folder.path() / "out");
  EXPECT_EQ(report.quantised, 0);
  EXPECT_GT(report.kept, 0);
  expect_equal_logits(folder.path() / "out", file);
  EXPECT_FALSE(fs::exists(folder.path() / "out.partial"));
}

INSTANTIATE_TEST_SUITE_P(Families, Goldens,
                         ::testing::Values("llama-a", "qwen2-a", "qwen3-a", "dense-llama-yarn-bias",
                                           "dense-llama-linear-rope"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ConvertGguf, RowsAreInHuggingFacesOrder) {  // an unquantised file gives back the checkpoint's own tensors
  test::TempFolder folder;
  const auto file =
      test::write_gguf(folder, test::gguf_of_golden("llama-a", [](const std::string&) { return DType::kBF16; }));
  const auto report = test::convert(file, folder.path() / "out");
  EXPECT_EQ(report.kept + report.quantised, 0);
  const auto before = test::tensors_of(test::golden("llama-a")), after = test::tensors_of(folder.path() / "out");
  EXPECT_EQ(before->names().size(), after->names().size());
  for (const std::string& name : before->names()) {
    ASSERT_NE(after->find(name), nullptr) << name;
    EXPECT_EQ(test::floats_of(*after->find(name)), test::floats_of(*before->find(name))) << name;
  }
  EXPECT_FALSE(test::json_of(folder.path() / "out/config.json").contains("quantization"));
  expect_equal_logits(folder.path() / "out", test::golden("llama-a"));
}

TEST(ConvertGguf, ConfigSaysTheFormOfEachModule) {
  test::TempFolder folder;
  const auto file = test::write_gguf(folder, test::gguf_of_golden("llama-a", mixed));
  test::convert(file, folder.path() / "out");
  const auto config = test::json_of(folder.path() / "out/config.json");
  const auto& quantization = config["quantization"];
  EXPECT_EQ(quantization, config["quantization_config"]);
  EXPECT_EQ(config["model_type"], "llama");
  EXPECT_EQ(quantization["bits"], 4);
  EXPECT_EQ(quantization["group_size"], 32);
  EXPECT_EQ(quantization["model.embed_tokens"]["bits"], 8);
  EXPECT_EQ(quantization["model.layers.0.mlp.gate_proj"], false);
  EXPECT_FALSE(quantization.contains("model.layers.0.mlp.down_proj"));
  const auto tensors = test::tensors_of(folder.path() / "out");
  EXPECT_EQ(tensors->find("model.embed_tokens.scales")->dtype, DType::kF16);
  EXPECT_EQ(tensors->find("model.layers.0.mlp.gate_proj.weight")->dtype, DType::kF16);
}

TEST(ConvertGguf, BitsQuantiseOnlyWhatIsNot) {
  test::TempFolder folder;
  const auto file = test::write_gguf(folder, test::gguf_of_golden("llama-a", mixed));
  test::convert(file, folder.path() / "kept");
  const auto report = test::convert(file, folder.path() / "out", {.bits = 6, .group = 32});
  EXPECT_EQ(report.quantised, 6);  // gate and v of three layers
  const auto kept = test::tensors_of(folder.path() / "kept"), out = test::tensors_of(folder.path() / "out");
  const TensorView *a = kept->find("model.embed_tokens.weight"), *b = out->find("model.embed_tokens.weight");
  ASSERT_EQ(a->data.size(), b->data.size());
  EXPECT_EQ(std::memcmp(a->data.data(), b->data.data(), a->data.size()), 0);
  EXPECT_EQ(out->find("model.layers.0.mlp.gate_proj.weight")->shape, (std::vector<std::int64_t>{192, 96 * 6 / 32}));
  EXPECT_EQ(out->find("model.layers.0.self_attn.v_proj.scales")->dtype, DType::kF32);
  const auto gguf = test::logits_of(file, Act::kF32);
  const double distance = test::relative_distance(test::logits_of(folder.path() / "out", Act::kF32), gguf);
  EXPECT_GT(distance, 0);
  EXPECT_LT(distance, 0.1);
}

TEST(ConvertGguf, RequantiseTakesAll) {
  test::TempFolder folder;
  const auto file = test::write_gguf(folder, test::gguf_of_golden("llama-a", mixed));
  const auto report = test::convert(file, folder.path() / "out", {.bits = 8, .group = 32, .requantise = true});
  EXPECT_EQ(report.kept, 0);
  EXPECT_EQ(report.quantised, 22);
  const auto gguf = test::logits_of(file, Act::kF32);
  EXPECT_LT(test::relative_distance(test::logits_of(folder.path() / "out", Act::kF32), gguf), 0.05);
  EXPECT_THAT(convert_model(file, folder.path() / "none", {.requantise = true}).message(), HasSubstr("--bits"));
}

TEST(ConvertGguf, ScalesBeyondF16AreRefused) {  // -8 * 9000 is no F16 number
  test::TempFolder folder;
  auto changed = test::gguf_of_golden("llama-a", mixed).build();
  auto opened = GgufFile::from_bytes(changed, "model.gguf");
  ASSERT_TRUE(opened.is_ok()) << opened.message();
  const TensorView* down = (*opened)->find("blk.1.ffn_down.weight");
  ASSERT_EQ(down->dtype, DType::kQ4_0);
  const std::uint16_t large = f32_to_f16(9000);
  std::memcpy(changed.data() + (down->data.data() - changed.data()), &large, 2);
  const auto file = folder.write("model.gguf", std::span<const std::byte>(changed));
  const auto result = convert_model(file, folder.path() / "out", {});
  ASSERT_FALSE(result.is_ok());
  EXPECT_THAT(result.message(), HasSubstr("model.layers.1.mlp.down_proj"));
  EXPECT_FALSE(fs::exists(folder.path() / "out"));
  EXPECT_FALSE(fs::exists(folder.path() / "out.partial"));
}

TEST(ConvertGguf, Llama3FactorsBecomeAScaling) {
  test::TempFolder folder;
  auto builder = test::gguf_of_golden("dense-llama-llama3-rope", [](const std::string&) { return DType::kF16; });
  const auto config = config_from_folder(test::golden("dense-llama-llama3-rope"));
  ASSERT_TRUE(config.is_ok()) << config.message();
  const auto text = test::json_of(test::golden("dense-llama-llama3-rope") / "config.json");
  const double theta = text["rope_parameters"]["rope_theta"];
  std::vector<float> factors;
  for (std::size_t i = 0; i < config->rope.inverse.size(); ++i)
    factors.push_back(static_cast<float>(std::pow(theta, -2.0 * static_cast<double>(i) / config->rope.dims) /
                                         config->rope.inverse[i]));
  auto with = builder;
  with.add_tensor("rope_freqs.weight", DType::kF32, {static_cast<std::int64_t>(factors.size())}, factors);
  const bool standard = text["rope_parameters"]["original_max_position_embeddings"].get<int>() >= 1024;
  const auto result = convert_model(test::write_gguf(folder, with), folder.path() / "out", {});
  if (standard) {
    ASSERT_TRUE(result.is_ok()) << result.message();
  } else {
    ASSERT_FALSE(result.is_ok());
    EXPECT_THAT(result.message(), HasSubstr("rope_freqs.weight"));
  }
}

TEST(ConvertGguf, BadInput) {
  test::TempFolder folder;
  const auto out = folder.path() / "out";
  EXPECT_FALSE(convert_model(folder.path() / "none.gguf", out, {}).is_ok());
  EXPECT_FALSE(convert_model(folder.write("text.gguf", "no model"), out, {}).is_ok());
  const auto builder = test::gguf_of_golden("llama-a", mixed);
  const auto file = test::write_gguf(folder, builder);
  EXPECT_THAT(convert_model(file, out, {.bits = 7}).message(), HasSubstr("7 bits"));
  EXPECT_THAT(convert_model(file, out, {.group = 48}).message(), HasSubstr("groups of 48"));
  EXPECT_THAT(convert_model(file, out, {.bits = 4, .recipe = "mixed_3_4"}).message(), HasSubstr("--bits or --recipe"));
  EXPECT_THAT(convert_model(file, folder.path() / "no" / "out", {}).message(), HasSubstr("folder above"));
  fs::create_directory(out);
  EXPECT_THAT(convert_model(file, out, {}).message(), HasSubstr("exists already"));
  fs::remove(out);
  fs::create_directory(folder.path() / "out.partial");
  EXPECT_THAT(convert_model(file, out, {}).message(), HasSubstr("interrupted"));
  fs::remove(folder.path() / "out.partial");
  auto wrong = test::gguf_of_golden("llama-a", mixed);
  wrong.add_tensor("blk.0.extra.weight", DType::kF32, {2}, {1.0f, 2.0f});
  const auto report = test::convert(test::write_gguf(folder, wrong), out);
  EXPECT_THAT(report.notes, ::testing::Contains(HasSubstr("blk.0.extra.weight")));
}

TEST(ConvertGguf, DefaultModelScoresToTheBit) {
  fs::path file;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(config().models() / "smollm2", error))
    if (entry.path().extension() == ".gguf") file = entry.path();
  if (file.empty()) GTEST_SKIP() << "smollm2 is not stored; run `steadfast pull smollm2`";
  test::TempFolder folder;
  test::convert(file, folder.path() / "out");
  expect_equal_logits(folder.path() / "out", file);
  auto from_file = GgufFile::open(file);
  ASSERT_TRUE(from_file.is_ok()) << from_file.message();
  const auto before = Tokenizer::from_gguf(**from_file), after = Tokenizer::from_folder(folder.path() / "out");
  ASSERT_TRUE(after.is_ok()) << after.message();
  const std::string text = test::read_text(fs::path(STEADFAST_SOURCE_DIR) / "tests/data/ordinary_text.txt");
  EXPECT_EQ(after->encode(text), before->encode(text));
}

}  // namespace
}  // namespace steadfast
