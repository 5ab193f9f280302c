// Hugging Face folders to MLX folders: names, forms, shards, files beside the weights, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/quantise.h"
#include "models.h"
#include "quant/affine.h"
#include "support/safetensors_builder.h"

namespace steadfast {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

// llama-a's folder with one tensor more, or other values in one.
void copy_golden(const fs::path& to) {
  fs::create_directory(to);
  for (const char* name : {"config.json", "model.safetensors"})
    fs::copy_file(test::golden("llama-a") / name, to / name);
}

TEST(ConvertFolder, EveryMatrixIsQuantisedByTheRule) {
  test::TempFolder folder;
  const auto report = test::convert(test::golden("llama-a"), folder.path() / "out", {.bits = 4, .group = 32});
  EXPECT_EQ(report.quantised, 22);
  const auto before = test::tensors_of(test::golden("llama-a")), after = test::tensors_of(folder.path() / "out");
  for (const std::string& name : before->names()) {
    const TensorView* source = before->find(name);
    const std::string module = name.substr(0, name.size() - 7);
    if (source->shape.size() == 1) {
      EXPECT_EQ(test::floats_of(*after->find(name)), test::floats_of(*source)) << name;
      continue;
    }
    auto reader = read_mlx_affine(*after, module, 4, 32);
    ASSERT_TRUE(reader.is_ok()) << reader.message();
    EXPECT_EQ((*reader)->scale_dtype(), DType::kBF16);
    const auto values = test::floats_of(*source);
    const auto width = static_cast<std::size_t>((*reader)->in());
    std::vector<std::uint8_t> codes(width), expected(width);
    std::vector<float> scales(width / 32), biases(scales), expected_scales(scales), expected_biases(scales);
    for (int row = 0; row < (*reader)->out(); ++row) {
      (*reader)->read(row, codes.data(), scales.data(), biases.data());
      quantise_row(values.data() + static_cast<std::size_t>(row) * width, static_cast<int>(width), 4, 32,
                   expected.data(), expected_scales.data(), expected_biases.data());
      for (auto* floats : {&expected_scales, &expected_biases})
        for (float& value : *floats) value = bf16_to_f32(f32_to_bf16(value));
      ASSERT_EQ(codes, expected) << name;
      ASSERT_EQ(scales, expected_scales) << name;
      ASSERT_EQ(biases, expected_biases) << name;
    }
  }
}

TEST(ConvertFolder, QuantisedLogitsAreNear) {
  test::TempFolder folder;
  const auto before = test::logits_of(test::golden("llama-a"), Act::kF32);
  test::convert(test::golden("llama-a"), folder.path() / "four", {.bits = 4, .group = 32});
  test::convert(test::golden("llama-a"), folder.path() / "eight", {.bits = 8, .group = 32});
  const double four = test::relative_distance(test::logits_of(folder.path() / "four", Act::kF32), before);
  const double eight = test::relative_distance(test::logits_of(folder.path() / "eight", Act::kF32), before);
  EXPECT_LT(four, 0.4);
  EXPECT_LT(eight, 0.04);
  EXPECT_LT(eight, four / 4);
}

TEST(ConvertFolder, DefaultIsFourBitsInGroupsOf64WhereTheyFit) {
  test::TempFolder folder;
  const auto report = test::convert(test::golden("llama-a"), folder.path() / "out");
  EXPECT_EQ(report.quantised, 3);  // only down_proj has a width that 64 divides
  EXPECT_THAT(report.notes,
              Contains(HasSubstr("model.embed_tokens stays unquantised: groups of 64 do not divide its 96 columns")));
  const auto quantization = test::json_of(folder.path() / "out/config.json")["quantization"];
  EXPECT_EQ(quantization["bits"], 4);
  EXPECT_EQ(quantization["group_size"], 64);
  EXPECT_EQ(quantization["mode"], "affine");
  EXPECT_EQ(quantization["model.embed_tokens"], false);
  EXPECT_FALSE(quantization.contains("model.layers.0.mlp.down_proj"));
  test::logits_of(folder.path() / "out", Act::kInt8);
}

TEST(ConvertFolder, RecipesDecideByModule) {
  test::TempFolder folder;
  const auto file = folder.write("r.json", R"({"default": {"bits": 3, "group_size": 32},
      "modules": [["model.embed_tokens", {"bits": 8}], ["*.0.self_attn.*", false], ["typo", {"bits": 8}]]})");
  const auto report = test::convert(test::golden("llama-a"), folder.path() / "out", {.recipe = file.string()});
  EXPECT_THAT(report.notes, Contains(HasSubstr("\"typo\"")));
  const auto quantization = test::json_of(folder.path() / "out/config.json")["quantization"];
  EXPECT_EQ(quantization["bits"], 3);
  EXPECT_EQ(quantization["model.embed_tokens"]["bits"], 8);
  EXPECT_EQ(quantization["model.layers.0.self_attn.q_proj"], false);
  EXPECT_FALSE(quantization.contains("model.layers.1.self_attn.q_proj"));
  test::logits_of(folder.path() / "out", Act::kInt8);
  const auto bad = folder.write("bad.json", R"({"modules": [["model.layers.1.mlp.up_proj", {"bits": 8}]]})");
  const auto refused = convert_model(test::golden("llama-a"), folder.path() / "no", {.recipe = bad.string()});
  EXPECT_THAT(refused.message(), HasSubstr("model.layers.1.mlp.up_proj has 96 columns"));
  test::convert(test::golden("llama-a"), folder.path() / "mixed", {.group = 32, .recipe = "mixed_4_6"});
  EXPECT_EQ(test::json_of(folder.path() / "mixed/config.json")["quantization"]["model.layers.2.mlp.down_proj"]["bits"],
            6);
}

TEST(ConvertFolder, ShardsAreBoundedAndIndexed) {
  test::TempFolder folder;
  test::convert(test::golden("llama-a"), folder.path() / "one", {.bits = 4, .group = 32});
  ConvertOptions options{.bits = 4, .group = 32};
  options.shard_bytes = 40'000;
  int last = 0, total = 0;
  options.progress = [&](int done, int all) {
    EXPECT_EQ(done, last + 1);
    last = done;
    total = all;
  };
  const auto report = test::convert(test::golden("llama-a"), folder.path() / "many", options);
  EXPECT_GT(report.shards, 2);
  EXPECT_EQ(last, total);
  const auto index = test::json_of(folder.path() / "many/model.safetensors.index.json");
  EXPECT_EQ(index["metadata"]["total_size"], report.bytes);
  EXPECT_EQ(index["weight_map"].size(), static_cast<std::size_t>(report.tensors));
  for (const auto& entry : fs::directory_iterator(folder.path() / "many")) {
    if (entry.path().extension() != ".safetensors") continue;
    EXPECT_LT(fs::file_size(entry), 45'000u) << entry.path();
  }
  EXPECT_EQ(test::difference(test::logits_of(folder.path() / "many", Act::kInt8),
                             test::logits_of(folder.path() / "one", Act::kInt8)),
            "equal");
}

TEST(ConvertFolder, FilesBesideTheWeightsComeAlong) {
  test::TempFolder folder;
  copy_golden(folder.path() / "in");
  folder.write("in/chat_template.jinja", "{{ messages }}");
  folder.write("in/generation_config.json", R"({"eos_token_id": [2, 3], "temperature": 0.5})");
  fs::copy_file(test::golden("text") / "tokenizer.json", folder.path() / "in/tokenizer.json");
  test::convert(folder.path() / "in", folder.path() / "out/");
  for (const char* name : {"chat_template.jinja", "generation_config.json", "tokenizer.json"})
    EXPECT_EQ(test::read_text(folder.path() / "out" / name), test::read_text(folder.path() / "in" / name)) << name;
}

TEST(ConvertFolder, WhatCannotBeConverted) {
  test::TempFolder folder;
  const auto out = folder.path() / "out";
  EXPECT_THAT(convert_model(folder.path(), out, {}).message(), HasSubstr("config.json"));
  EXPECT_THAT(convert_model(test::golden("mlx-llama-mixed"), out, {}).message(), HasSubstr("quantised already"));
  const auto in = folder.path() / "in";
  copy_golden(in);
  const auto refused = [&](const test::SafetensorsBuilder& builder, const char* part) {
    const auto bytes = builder.build();
    folder.write("in/model-extra.safetensors", std::span<const std::byte>(bytes));
    fs::remove(in / "model.safetensors");
    fs::copy_file(test::golden("llama-a") / "model.safetensors", in / "model-base.safetensors",
                  fs::copy_options::overwrite_existing);
    const auto result = convert_model(in, out, {.bits = 4, .group = 32});
    EXPECT_THAT(result.message(), HasSubstr(part));
    EXPECT_FALSE(fs::exists(out));
    EXPECT_FALSE(fs::exists(folder.path() / "out.partial"));
  };
  refused(test::SafetensorsBuilder().add_tensor("model.layers.7.x.weight", DType::kF8E4M3, {1, 32}, test::Bytes(32)),
          "model.layers.7.x.weight");
  std::vector<float> values(64, 1.0f);
  values[40] = std::numeric_limits<float>::infinity();
  refused(test::SafetensorsBuilder().add_tensor("model.layers.7.x.weight", DType::kBF16, {2, 32}, values),
          "model.layers.7.x: row 1 holds inf");
}

}  // namespace
}  // namespace steadfast
