// Recipes: patterns, defaults, mlx-lm's mixtures, and a sentence for what is wrong.
#include "convert/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace steadfast {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Recipe read(const char* text) {
  auto recipe = Recipe::from_json(json::parse(text), "r.json");
  EXPECT_TRUE(recipe.is_ok()) << recipe.message();
  return std::move(*recipe);
}

TEST(Recipe, FirstPatternThatFits) {
  Recipe recipe = read(R"({"default": {"bits": 3, "group_size": 32}, "modules": [
      ["model.layers.0.*", false], ["*.down_proj", {"bits": 6}], ["*.mlp.*", {"bits": 8, "group_size": 128}], ["a*b*c", {"bits": 2}],
      ["nothing", false]]})");
  EXPECT_FALSE(recipe.choose("model.layers.0.mlp.down_proj").form);
  EXPECT_EQ(recipe.choose("model.layers.1.mlp.down_proj").form, (AffineForm{6, 32}));
  EXPECT_EQ(recipe.choose("model.layers.1.mlp.up_proj").form, (AffineForm{8, 128}));
  EXPECT_TRUE(recipe.choose("model.layers.1.mlp.up_proj").explicitly);
  EXPECT_EQ(recipe.choose("model.layers.10.self_attn.q_proj").form, (AffineForm{3, 32}));
  EXPECT_FALSE(recipe.choose("lm_head").explicitly);
  EXPECT_EQ(recipe.choose("abbcbc").form, (AffineForm{2, 32}));
  EXPECT_EQ(recipe.choose("abbcb").form, (AffineForm{3, 32}));
  EXPECT_EQ(recipe.unused(), std::vector<std::string>{"nothing"});
}

TEST(Recipe, EmptyIsMlxsDefault) { EXPECT_EQ(read("{}").base(), (AffineForm{4, 64})); }

TEST(Recipe, MixturesAsMlxChooses) {
  auto recipe = Recipe::named("mixed_3_6", 64, 30);  // n / 8 = 3, 7n / 8 = 26
  ASSERT_TRUE(recipe.is_ok()) << recipe.message();
  EXPECT_EQ(recipe->base(), (AffineForm{3, 64}));
  EXPECT_EQ(recipe->choose("lm_head").form->bits, 6);
  EXPECT_EQ(recipe->choose("model.embed_tokens").form->bits, 3);
  std::vector<int> high;
  for (int layer = 0; layer < 30; ++layer) {
    const std::string base = fmt::format("model.layers.{}.", layer);
    EXPECT_EQ(recipe->choose(base + "mlp.up_proj").form->bits, 3);
    const int bits = recipe->choose(base + "self_attn.v_proj").form->bits;
    EXPECT_EQ(recipe->choose(base + "mlp.down_proj").form->bits, bits);
    if (bits == 6) high.push_back(layer);
  }
  EXPECT_EQ(high, (std::vector<int>{0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 26, 27, 28, 29}));
  EXPECT_EQ(Recipe::named("mixed_2_6", 128, 30)->base(), (AffineForm{2, 128}));
}

TEST(Recipe, Errors) {
  const auto error = [](const char* text) { return Recipe::from_json(json::parse(text), "r.json").message(); };
  EXPECT_THAT(error("[]"), HasSubstr("r.json must hold an object"));
  EXPECT_THAT(error(R"({"defaults": {}})"), HasSubstr("\"defaults\""));
  EXPECT_THAT(error(R"({"default": {"bits": 7}})"), HasSubstr("7 bits"));
  EXPECT_THAT(error(R"({"default": {"bits": 4.5}})"), HasSubstr("whole number"));
  EXPECT_THAT(error(R"({"default": {"group_size": 48}})"), HasSubstr("groups of 48"));
  EXPECT_THAT(error(R"({"modules": {}})"), HasSubstr("list"));
  EXPECT_THAT(error(R"({"modules": [["a"]]})"), HasSubstr("entry 0"));
  EXPECT_THAT(error(R"({"modules": [["a", true]]})"), HasSubstr("\"a\""));
  EXPECT_THAT(error(R"({"modules": [["a", {"bit": 4}]]})"), HasSubstr("\"bit\""));
  EXPECT_THAT(error(R"({"modules": [["a", {"mode": "mxfp4"}]]})"), HasSubstr("\"mode\""));
  EXPECT_THAT(Recipe::named("mixed_9_9", 64, 8).message(), HasSubstr("mixed_3_4"));
  EXPECT_THAT(Recipe::uniform({9, 64}).message(), HasSubstr("9 bits"));
}

}  // namespace
}  // namespace steadfast
