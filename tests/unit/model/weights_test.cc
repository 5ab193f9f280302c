// Loading weights: each tensor that is missing or of another shape than the config needs is named in one sentence.
#include <gtest/gtest.h>

#include "engine/load_model.h"
#include "support/tiny_model.h"

namespace steadfast {
namespace {

using test::TempFolder;
using test::TinyModel;

LoadOptions options() {
  LoadOptions options;
  options.threads = 1;
  options.act = Act::kF32;
  return options;
}

Result<std::unique_ptr<LoadedModel>> load(const TinyModel& model) {
  const TempFolder folder;
  model.write(folder);
  return load_model(folder.path(), options());
}

void expect_refused(const TinyModel& model, const std::string& part) {
  const auto loaded = load(model);
  ASSERT_FALSE(loaded) << part;
  EXPECT_NE(loaded.message().find(part), std::string::npos) << loaded.message();
  EXPECT_EQ(loaded.message().find('\n'), std::string::npos);
}

TEST(Weights, LoadAndAreDescribed) {
  const auto loaded = load(TinyModel::random(1));
  ASSERT_TRUE(loaded) << loaded.message();
  const auto modules = (*loaded)->model->weights().modules();
  ASSERT_EQ(modules.size(), 2 + 2 * 7u);
  EXPECT_EQ(modules.front().first, "embed_tokens");
  EXPECT_EQ(modules.back().first, "lm_head");
  for (const auto& [name, weight] : modules) EXPECT_EQ(weight->format(), "unquantised F32, float32 arithmetic") << name;
  EXPECT_GT((*loaded)->model->weights().bytes(), 4u * 96 * 64);
}

TEST(Weights, DigestIsOfTheContent) {
  const TinyModel model = TinyModel::random(1);
  TinyModel other = model;
  other.tensors["model.layers.1.mlp.up_proj.weight"].values[5] += 1;
  const auto a = load(model), b = load(model), c = load(other);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ((*a)->card.digest, (*b)->card.digest);
  EXPECT_NE((*a)->card.digest, (*c)->card.digest);
  EXPECT_EQ((*a)->card.digest.size(), 32u);
}

TEST(Weights, EachMissingTensorIsNamed) {
  const TinyModel model = TinyModel::random(2, /*biases=*/true);
  for (const auto& [name, tensor] : model.tensors) {
    TinyModel less = model;
    less.tensors.erase(name);
    expect_refused(less, name == "model.embed_tokens.weight" ? "embed_tokens.weight" : name);
  }
}

TEST(Weights, EachTensorOfAnotherShapeIsNamed) {
  const TinyModel model = TinyModel::random(3, /*biases=*/true);
  for (const auto& [name, tensor] : model.tensors) {
    TinyModel wrong = model;
    auto& changed = wrong.tensors[name];
    changed.shape[0] += 1;
    changed.values.resize(changed.values.size() / static_cast<std::size_t>(tensor.shape[0]) *
                          static_cast<std::size_t>(changed.shape[0]));
    expect_refused(wrong, name.substr(0, name.rfind('.')));
    if (tensor.shape.size() < 2) continue;
    wrong = model;
    wrong.tensors[name].shape = {tensor.shape[1], tensor.shape[0]};
    if (tensor.shape[0] != tensor.shape[1]) expect_refused(wrong, name.substr(0, name.rfind('.')));
  }
}

TEST(Weights, HeadIsTheTableWhereTied) {
  TinyModel model = TinyModel::random(4);
  model.config["tie_word_embeddings"] = true;
  model.tensors.erase("lm_head.weight");
  const auto loaded = load(model);
  ASSERT_TRUE(loaded) << loaded.message();
  EXPECT_EQ(&(*loaded)->model->weights().head(), &(*loaded)->model->weights().embedding());
}

TEST(Weights, AreFoundUnderEveryPrefix) {
  const TinyModel model = TinyModel::random(5);
  for (const std::string prefix : {"", "model.language_model.", "language_model.model."}) {
    TinyModel renamed = model;
    renamed.tensors.clear();
    for (const auto& [name, tensor] : model.tensors)
      renamed.tensors[name.rfind("model.", 0) == 0 ? prefix + name.substr(6) : name] = tensor;
    const auto loaded = load(renamed);
    EXPECT_TRUE(loaded) << prefix << ": " << loaded.message();
  }
}

TEST(Weights, ScalesWithoutQuantizationAreRefused) {
  TinyModel model = TinyModel::random(6);
  model.tensors["model.layers.0.mlp.up_proj.scales"] = {{80, 2}, std::vector<float>(160)};
  expect_refused(model, "model.layers.0.mlp.up_proj has scales but config.json has no \"quantization\"");
}

TEST(LoadModel, SaysWhatIsWrongWithThePathOrTheOptions) {
  EXPECT_NE(load_model("/nowhere/at/all", options()).message().find("/nowhere/at/all does not exist"),
            std::string::npos);
  const TempFolder empty;
  EXPECT_NE(load_model(empty.path(), options()).message().find("no config.json"), std::string::npos);
  LoadOptions other = options();
  other.device = "abacus";
  EXPECT_NE(load_model(empty.path(), other).message().find("--device abacus"), std::string::npos);
  EXPECT_NE(parse_act("int4").message().find("--act int4"), std::string::npos);
  EXPECT_NE(parse_act("int4", "--prompt-act").message().find("--prompt-act int4"), std::string::npos);
  EXPECT_NE(parse_kv_dtype("q4").message().find("--kv-dtype q4"), std::string::npos);
  EXPECT_EQ(*parse_act("bf16"), Act::kBF16);
  EXPECT_EQ(*parse_kv_dtype("f32"), DType::kF32);
  EXPECT_EQ(*parse_kv_dtype("fp8"), DType::kF8E4M3);
}

TEST(LoadModel, ReadsTheSamplingDefaults) {
  const TinyModel model = TinyModel::random(7);
  const TempFolder folder;
  model.write(folder);
  const auto bare = load_model(folder.path(), options());
  ASSERT_TRUE(bare) << bare.message();
  EXPECT_FALSE((*bare)->has_generation_config);
  EXPECT_EQ((*bare)->kv_dtype, DType::kF32);
  EXPECT_FALSE((*bare)->tokenizer);
  folder.write("generation_config.json", R"({"temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [3]})");
  const auto loaded = load_model(folder.path(), options());
  ASSERT_TRUE(loaded) << loaded.message();
  EXPECT_EQ((*loaded)->card.defaults.temperature, 0.6f);
  EXPECT_EQ((*loaded)->card.defaults.top_k, 20);
  EXPECT_EQ((*loaded)->card.defaults.top_p, 0.95f);
  EXPECT_EQ((*loaded)->card.eos_ids, std::vector<TokenId>{3});
  EXPECT_EQ((*loaded)->card.window, model.max_positions);
  folder.write("generation_config.json", R"({"do_sample": false})");
  const auto greedy = load_model(folder.path(), options());
  ASSERT_TRUE(greedy) << greedy.message();
  EXPECT_EQ((*greedy)->card.defaults.temperature, 0.0f);
  folder.write("generation_config.json", R"({"top_p": 7})");
  EXPECT_NE(load_model(folder.path(), options()).message().find("\"top_p\""), std::string::npos);
}

}  // namespace
}  // namespace steadfast
