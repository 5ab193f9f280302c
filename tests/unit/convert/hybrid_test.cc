// The hybrids: MLX names and layouts from Hugging Face folders, and GGUF's tiled heads put back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models.h"

namespace steadfast {
namespace {

using Shape = std::vector<std::int64_t>;

// The shape of a GGUF model that holds the golden's numbers exactly: converted, it must be the golden again.
void expect_back(const std::string& name) {
  test::TempFolder folder;
  const auto file =
      test::write_gguf(folder, test::gguf_of_golden(name, [](const std::string&) { return DType::kBF16; }));
  test::convert(file, folder.path() / "out");
  for (const Act act : {Act::kInt8, Act::kF32})
    EXPECT_EQ(test::difference(test::logits_of(folder.path() / "out", act), test::logits_of(test::golden(name), act)),
              "equal")
        << to_string(act);
  const auto before = test::tensors_of(test::golden(name)), after = test::tensors_of(folder.path() / "out");
  for (const std::string& from : before->names()) {
    if (!from.ends_with("_proj.weight") && from.find("conv1d") == from.npos && !from.ends_with("mtp.fc.weight"))
      continue;
    const bool outer = from.starts_with("model.language_model.");
    const std::string to = outer ? "language_model.model." + from.substr(21) : "language_model." + from;
    ASSERT_NE(after->find(to), nullptr) << to;
    EXPECT_EQ(test::floats_of(*after->find(to)), test::floats_of(*before->find(from))) << to;
  }
}

TEST(ConvertHybrid, UnequalHeadsComeBackFromGguf) { expect_back("hybrid-f-multimodal-form"); }
TEST(ConvertHybrid, OddDimsComeBackFromGguf) { expect_back("hybrid-e-unequal-dims"); }
TEST(ConvertHybrid, YarnComesBackFromGguf) { expect_back("hybrid-g-yarn"); }

TEST(ConvertHybrid, QuantisedGgufKeepsItsCodes) {
  test::TempFolder folder;
  const auto file =
      test::write_gguf(folder, test::gguf_of_golden("hybrid-f-multimodal-form", [](const std::string& name) {
                         return name.find("attn") != name.npos ? DType::kQ4_1 : DType::kQ8_0;
                       }));
  const auto report = test::convert(file, folder.path() / "out");
  EXPECT_EQ(report.quantised, 0);
  // The heads' order differs, and with it the order of out_proj's sums: equal but for rounding.
  const double distance =
      test::relative_distance(test::logits_of(folder.path() / "out", Act::kF32), test::logits_of(file, Act::kF32));
  EXPECT_LT(distance, 1e-4);
}

TEST(ConvertHybrid, FolderTakesMlxsForm) {
  test::TempFolder folder;
  const auto in = test::golden("hybrid-f-multimodal-form");
  const auto report = test::convert(in, folder.path() / "out", {.bits = 4, .group = 32});
  EXPECT_THAT(report.notes, ::testing::Contains(::testing::HasSubstr("4 tensors left out")));
  const auto before = test::tensors_of(in), after = test::tensors_of(folder.path() / "out");
  for (const std::string& name : after->names()) EXPECT_TRUE(name.starts_with("language_model.")) << name;
  const std::string layer = "language_model.model.layers.0.";
  EXPECT_EQ(after->find(layer + "linear_attn.conv1d.weight")->shape, (Shape{320, 4, 1}));
  EXPECT_EQ(after->find(layer + "linear_attn.conv1d.weight")->dtype, DType::kBF16);
  EXPECT_EQ(after->find(layer + "linear_attn.A_log")->dtype, DType::kF32);
  EXPECT_EQ(after->find(layer + "linear_attn.in_proj_a.weight")->dtype, DType::kU32);
  EXPECT_NE(after->find("language_model.mtp.layers.0.self_attn.q_proj.scales"), nullptr);
  const auto expect_added = [&](const std::string& from, const std::string& to, float add) {
    auto values = test::floats_of(*before->find(from));
    for (float& value : values) value = bf16_to_f32(f32_to_bf16(value + add));
    EXPECT_EQ(test::floats_of(*after->find(to)), values) << to;
  };
  const std::string old = "model.language_model.layers.";
  expect_added(old + "0.input_layernorm.weight", layer + "input_layernorm.weight", 1);
  expect_added(old + "3.self_attn.q_norm.weight", "language_model.model.layers.3.self_attn.q_norm.weight", 1);
  expect_added(old + "0.linear_attn.norm.weight", layer + "linear_attn.norm.weight", 0);
  expect_added("model.language_model.norm.weight", "language_model.model.norm.weight", 1);
  expect_added("mtp.norm.weight", "language_model.mtp.norm.weight", 1);
  expect_added("mtp.pre_fc_norm_hidden.weight", "language_model.mtp.pre_fc_norm_hidden.weight", 1);
  const auto config = test::json_of(folder.path() / "out/config.json");
  EXPECT_FALSE(config.contains("vision_config"));
  EXPECT_EQ(config["text_config"]["model_type"], "qwen3_5_text");
}

TEST(ConvertHybrid, QuantisedLogitsAreNear) {
  for (const char* name : {"hybrid-b-dim64-equal-heads", "hybrid-f-multimodal-form"}) {
    test::TempFolder folder;
    const auto before = test::logits_of(test::golden(name), Act::kF32);
    test::convert(test::golden(name), folder.path() / "four", {.bits = 4, .group = 32});
    test::convert(test::golden(name), folder.path() / "eight", {.bits = 8, .group = 32});
    const double four = test::relative_distance(test::logits_of(folder.path() / "four", Act::kF32), before);
    const double eight = test::relative_distance(test::logits_of(folder.path() / "eight", Act::kF32), before);
    EXPECT_LT(four, 1.0) << name;  // small sums of large random terms; logits that have nothing in common: 1.41
    EXPECT_LT(eight, 0.15) << name;
    EXPECT_LT(eight, four / 4) << name;
  }
}

}  // namespace
}  // namespace steadfast
