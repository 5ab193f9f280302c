// Random models: made from a name alone, of the shape that the name says, with numbers of an ordinary size.
#include "model/random_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/score.h"
#include "model/config.h"

namespace steadfast {
namespace {

std::vector<float> logits_of_tiny(std::string& digest) {
  LoadOptions options;
  options.threads = 1;
  options.act = Act::kF32;
  auto loaded = load_model("random:tiny", options);
  EXPECT_TRUE(loaded) << loaded.message();
  if (!loaded) return {};
  digest = (*loaded)->card.digest;
  std::vector<float> all;
  const std::vector<TokenId> ids = {1, 2, 3, 500, 7};
  const auto status = score(**loaded, ids, 8, [&](int, int rows, const float* logits) {
    all.insert(all.end(), logits, logits + static_cast<std::ptrdiff_t>(rows) * (*loaded)->card.vocab_size);
    return Status::ok();
  });
  EXPECT_TRUE(status) << status.message();
  return all;
}

TEST(RandomModel, TheSameNameGivesTheSameLogitsOfOrdinarySize) {
  std::string digest, again;
  const auto logits = logits_of_tiny(digest);
  EXPECT_EQ(logits, logits_of_tiny(again));
  EXPECT_EQ(digest, again);
  ASSERT_EQ(logits.size(), 5u * 512u);
  double squares = 0;
  for (const float x : logits) squares += static_cast<double>(x) * static_cast<double>(x);
  const double deviation = std::sqrt(squares / static_cast<double>(logits.size()));
  EXPECT_GT(deviation, 0.2);
  EXPECT_LT(deviation, 5);
}

TEST(RandomModel, LayersCanBeFewer) {
  auto model = make_random_model("tiny-2");
  ASSERT_TRUE(model) << model.message();
  EXPECT_EQ(model->config["text_config"]["num_hidden_layers"], 2);
  EXPECT_NE(model->tensors->find("language_model.model.layers.1.mlp.up_proj.weight"), nullptr);
  EXPECT_EQ(model->tensors->find("language_model.model.layers.2.mlp.up_proj.weight"), nullptr);
}

TEST(RandomModel, TensorsDifferThoughTheyShareBlocks) {
  auto model = make_random_model("tiny");
  ASSERT_TRUE(model) << model.message();
  const auto* gate = model->tensors->find("language_model.model.layers.0.mlp.gate_proj.weight");
  const auto* up = model->tensors->find("language_model.model.layers.0.mlp.up_proj.weight");
  ASSERT_NE(gate, nullptr);
  ASSERT_NE(up, nullptr);
  EXPECT_FALSE(std::equal(gate->data.begin(), gate->data.end(), up->data.begin()));
}

TEST(RandomModel, UnknownShapesAreRefusedWithTheKnownOnes) {
  for (const char* name : {"", "qwen", "tiny-0", "tiny-x", "tiny5", "tiny-2000"}) {
    const auto model = make_random_model(name);
    EXPECT_FALSE(model) << name;
    EXPECT_NE(model.message().find("random:"), std::string::npos) << model.message();
  }
  EXPECT_NE(make_random_model("huge").message().find("qwen3.5-27b"), std::string::npos);
}

}  // namespace
}  // namespace steadfast
