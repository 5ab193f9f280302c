// GGUF metadata to ModelConfig: the same checks as config.json's, and what the tensors tell.
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "model/config.h"
#include "model/rope.h"
#include "support/tiny_model.h"

namespace steadfast {
namespace {

using test::GgufBuilder;
using test::TinyModel;

Result<ModelConfig> config_of(const GgufBuilder& builder) {
  const auto bytes = builder.build();
  auto file = GgufFile::from_bytes(bytes, "test.gguf");
  if (!file) return file.status();
  return config_from_gguf(**file);
}

// Just what the config needs: metadata and the embedding table's shape.
GgufBuilder small(const std::string& arch = "llama") {
  GgufBuilder builder;
  builder.add_kv("general.architecture", arch);
  builder.add_kv(arch + ".block_count", std::uint32_t{2});
  builder.add_kv(arch + ".context_length", std::uint64_t{64});
  builder.add_kv(arch + ".embedding_length", std::uint32_t{32});
  builder.add_kv(arch + ".feed_forward_length", std::uint32_t{48});
  builder.add_kv(arch + ".attention.head_count", std::uint32_t{2});
  builder.add_tensor("token_embd.weight", DType::kF32, {5, 32}, std::vector<float>(160));
  return builder;
}

void expect_refused(const GgufBuilder& builder, const std::string& part) {
  const auto config = config_of(builder);
  ASSERT_FALSE(config);
  EXPECT_NE(config.message().find(part), std::string::npos) << config.message();
}

TEST(ConfigGguf, ReadsAWholeModel) {
  const TinyModel model = TinyModel::random(1);
  const auto config = config_of(model.gguf());
  ASSERT_TRUE(config) << config.message();
  EXPECT_EQ(config->family, "llama");
  EXPECT_EQ(config->vocab, model.vocab);
  EXPECT_EQ(config->hidden, model.hidden);
  EXPECT_EQ(config->intermediate, model.intermediate);
  EXPECT_EQ(config->layers, model.layers);
  EXPECT_EQ(config->heads, model.heads);
  EXPECT_EQ(config->kv_heads, model.kv_heads);
  EXPECT_EQ(config->head_dim, model.head_dim);
  EXPECT_EQ(config->max_positions, model.max_positions);
  EXPECT_EQ(config->norm_eps, 1e-5f);
  EXPECT_EQ(config->rope.dims, model.head_dim);
  EXPECT_FALSE(config->tied);
  EXPECT_FALSE(config->qkv_bias);
}

TEST(ConfigGguf, TensorsTellTiesAndBiases) {
  const auto plain = config_of(small());
  ASSERT_TRUE(plain) << plain.message();
  EXPECT_TRUE(plain->tied);
  const auto biased = config_of(TinyModel::random(1, /*biases=*/true).gguf());
  ASSERT_TRUE(biased) << biased.message();
  EXPECT_TRUE(biased->qkv_bias && biased->output_bias);
  EXPECT_FALSE(biased->mlp_bias);
}

TEST(ConfigGguf, ReadsTheEndIds) {
  auto builder = small();
  builder.add_kv("tokenizer.ggml.eos_token_id", std::uint32_t{4})
      .add_kv("tokenizer.ggml.eot_token_id", std::uint32_t{2});
  builder.add_kv("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  const auto config = config_of(builder);
  ASSERT_TRUE(config) << config.message();
  EXPECT_EQ(config->eos, (std::vector<TokenId>{4, 2}));
  EXPECT_EQ(config->bos, 1);
  expect_refused(small().add_kv("tokenizer.ggml.eos_token_id", std::uint32_t{5}), "tokenizer.ggml.eos_token_id 5");
}

TEST(ConfigGguf, ReadsScalings) {
  auto builder = small();
  builder.add_kv("llama.rope.scaling.type", std::string("linear")).add_kv("llama.rope.scaling.factor", 4.0f);
  const auto config = config_of(builder);
  ASSERT_TRUE(config) << config.message();
  EXPECT_EQ(config->rope.position_factor, 0.25f);
  expect_refused(small().add_kv("llama.rope.scaling.type", std::string("longrope")), "\"longrope\"");
}

TEST(ConfigGguf, DividesByRopeFactors) {
  auto builder = small();
  builder.add_tensor("rope_freqs.weight", DType::kF32, {8}, std::vector<float>{1, 1, 2, 2, 4, 4, 8, 8});
  const auto config = config_of(builder), plain = config_of(small());
  ASSERT_TRUE(config && plain) << config.message();
  EXPECT_EQ(config->rope.inverse[1], plain->rope.inverse[1]);
  EXPECT_EQ(config->rope.inverse[7], plain->rope.inverse[7] / 8);
  expect_refused(small().add_tensor("rope_freqs.weight", DType::kF32, {7}, std::vector<float>(7, 1)),
                 "rope_freqs.weight has 7");
}

// dims / head_dim * head_dim is not dims again in double for all of these.
TEST(ConfigGguf, KeepsTheNumberOfRotaryDims) {
  for (const auto& [dim, rotary] : {std::pair(16, 16), {64, 32}, {176, 30}, {224, 122}, {464, 236}}) {
    auto builder = small();
    builder.add_kv("llama.attention.key_length", static_cast<std::uint32_t>(dim));
    builder.add_kv("llama.rope.dimension_count", static_cast<std::uint32_t>(rotary));
    const auto config = config_of(builder);
    ASSERT_TRUE(config) << config.message();
    EXPECT_EQ(config->rope.dims, rotary) << "heads of " << dim;
  }
}

TEST(ConfigGguf, NamesWhatIsMissingOrWrong) {
  expect_refused(GgufBuilder(), "general.architecture");
  expect_refused(GgufBuilder().add_kv("general.architecture", std::string("mamba")),
                 "\"mamba\" is not supported; llama");
  expect_refused(GgufBuilder().add_kv("general.architecture", std::string("llama")), "token_embd.weight");
  GgufBuilder empty;
  empty.add_kv("general.architecture", std::string("llama"));
  empty.add_tensor("token_embd.weight", DType::kF32, {5, 32}, std::vector<float>(160));
  expect_refused(empty, "is missing");
  expect_refused(small().add_kv("llama.attention.key_length", std::uint32_t{20}), "heads of 20");
  expect_refused(small().add_kv("llama.attention.head_count_kv", std::uint32_t{0}), "\"num_key_value_heads\"");
  expect_refused(small().add_kv("llama.rope.freq_base", -1.0f), "\"rope_theta\"");
}

}  // namespace
}  // namespace steadfast
