// config.json to ModelConfig: what is read, defaults, and one sentence naming the field for whatever is wrong.
#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/temp_folder.h"

namespace steadfast {
namespace {

using nlohmann::json;
using test::TempFolder;

json good() {
  return {{"model_type", "llama"},    {"vocab_size", 100},
          {"hidden_size", 64},        {"intermediate_size", 128},
          {"num_hidden_layers", 3},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"max_position_embeddings", 512}};
}

ModelConfig read(const json& config) {
  auto result = config_from_json(config);
  EXPECT_TRUE(result) << result.message();
  return result ? *result : ModelConfig{};
}

void expect_refused(const json& config, const std::string& part) {
  const auto result = config_from_json(config);
  ASSERT_FALSE(result) << config;
  EXPECT_NE(result.message().find(part), std::string::npos) << result.message();
  EXPECT_EQ(result.message().find('\n'), std::string::npos) << result.message();
}

json with(const char* key, json value) {
  json config = good();
  config[key] = std::move(value);
  return config;
}

TEST(Config, ReadsTheFields) {
  json source = good();
  source["rms_norm_eps"] = 1e-5;
  source["rope_theta"] = 5e5;
  source["tie_word_embeddings"] = true;
  source["bos_token_id"] = 1;
  source["eos_token_id"] = 2;
  const ModelConfig config = read(source);
  EXPECT_EQ(config.family, "llama");
  EXPECT_EQ(config.vocab, 100);
  EXPECT_EQ(config.hidden, 64);
  EXPECT_EQ(config.intermediate, 128);
  EXPECT_EQ(config.layers, 3);
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 16);  // hidden / heads
  EXPECT_EQ(config.max_positions, 512);
  EXPECT_EQ(config.norm_eps, 1e-5f);
  EXPECT_TRUE(config.tied);
  EXPECT_EQ(config.bos, 1);
  EXPECT_EQ(config.eos, std::vector<TokenId>{2});
  EXPECT_NEAR(config.rope.inverse[1], std::pow(5e5, -2.0 / 16), 1e-6);
  EXPECT_FALSE(config.qkv_bias || config.output_bias || config.mlp_bias || config.qk_norm);
}

TEST(Config, HasDefaults) {
  json source = good();
  source.erase("num_key_value_heads");
  source["bos_token_id"] = nullptr;
  source["eos_token_id"] = nullptr;
  const ModelConfig config = read(source);
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.norm_eps, 1e-6f);
  EXPECT_FALSE(config.tied);
  EXPECT_EQ(config.bos, -1);
  EXPECT_TRUE(config.eos.empty());
  EXPECT_EQ(config.rope.dims, 16);
}

TEST(Config, ReadsTheFamiliesDifferences) {
  json source = with("attention_bias", true);
  source["mlp_bias"] = true;
  const ModelConfig llama = read(source);
  EXPECT_TRUE(llama.qkv_bias && llama.output_bias && llama.mlp_bias);
  const ModelConfig qwen2 = read(with("model_type", "qwen2"));
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.output_bias || qwen2.qk_norm);
  const ModelConfig qwen3 = read(with("model_type", "qwen3"));
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_FALSE(qwen3.qkv_bias);
}

TEST(Config, ReadsRopeFromBothPlaces) {
  const ModelConfig beside = read(with("rope_scaling", {{"type", "linear"}, {"factor", 2.0}}));
  EXPECT_EQ(beside.rope.position_factor, 0.5f);
  const ModelConfig inside = read(with("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 123.0}}));
  EXPECT_NEAR(inside.rope.inverse[1], std::pow(123.0, -2.0 / 16), 1e-6);
  json partial = with("partial_rotary_factor", 0.5);
  partial["head_dim"] = 32;
  EXPECT_EQ(read(partial).rope.dims, 16);
}

TEST(Config, ReadsTextConfigOfAMultimodalFile) {
  const ModelConfig config = read({{"model_type", "outer"}, {"text_config", good()}, {"tie_word_embeddings", true}});
  EXPECT_EQ(config.vocab, 100);
  EXPECT_TRUE(config.tied);
}

TEST(Config, ReadsListsOfEos) {
  EXPECT_EQ(read(with("eos_token_id", json::array({5, 7}))).eos, (std::vector<TokenId>{5, 7}));
  expect_refused(with("eos_token_id", "</s>"), "\"eos_token_id\"");
  expect_refused(with("eos_token_id", json::array({5, "x"})), "\"eos_token_id\"");
  expect_refused(with("eos_token_id", json::array({-1})), "\"eos_token_id\"");
  expect_refused(with("eos_token_id", 1.5), "\"eos_token_id\"");
}

TEST(Config, NamesEachMissingField) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"}) {
    json config = good();
    config.erase(key);
    expect_refused(config, "\"" + std::string(key) + "\" is missing");
    config[key] = nullptr;
    expect_refused(config, "\"" + std::string(key) + "\" is missing");
  }
}

TEST(Config, NamesEachFieldOfAWrongTypeOrRange) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "head_dim", "max_position_embeddings"}) {
    for (const json& value : {json("64"), json(-3), json(0), json(1.5), json(1e300), json(std::uint64_t{1} << 63),
                              json::array({1}), json(true)})
      expect_refused(with(key, value), "\"" + std::string(key) + "\"");
  }
  expect_refused(with("rms_norm_eps", "small"), "\"rms_norm_eps\"");
  expect_refused(with("rms_norm_eps", -1), "\"rms_norm_eps\"");
  expect_refused(with("tie_word_embeddings", 1), "\"tie_word_embeddings\"");
  expect_refused(with("rope_theta", "big"), "\"rope_theta\"");
  expect_refused(with("rope_parameters", {{"rope_theta", -5}}), "\"rope_theta\"");
  expect_refused(with("attention_bias", "yes"), "\"attention_bias\"");
  expect_refused(with("bos_token_id", "<s>"), "\"bos_token_id\"");
  expect_refused(with("hidden_act", 5), "\"hidden_act\"");
  expect_refused(with("partial_rotary_factor", 2), "\"partial_rotary_factor\"");
}

TEST(Config, RefusesShapesThatCannotRun) {
  expect_refused(with("head_dim", 24), "heads of 24");
  expect_refused(with("head_dim", 1024), "heads of 1024");
  expect_refused(with("num_key_value_heads", 3), "4 heads cannot share 3");
  json odd = with("head_dim", 16);
  odd["partial_rotary_factor"] = 0.45;  // 7 dims
  expect_refused(odd, "rotary");
}

TEST(Config, RefusesWhatTheForwardDoesNotDo) {
  expect_refused(with("model_type", "gpt2"), "model_type \"gpt2\" is not supported; llama");
  expect_refused(with("model_type", 3), "model_type");
  json none = good();
  none.erase("model_type");
  expect_refused(none, "model_type \"(missing)\"");
  expect_refused(with("hidden_act", "gelu"), "hidden_act \"gelu\"");
  expect_refused(with("use_sliding_window", true), "sliding-window");
  expect_refused(with("rope_scaling", {{"rope_type", "longrope"}}), "\"longrope\"");
  expect_refused(json::array(), "not an object");
}

TEST(ConfigFolder, JoinsTheEosOfBothFiles) {
  const TempFolder folder;
  folder.write("config.json", with("eos_token_id", 3).dump());
  folder.write("generation_config.json", R"({"eos_token_id": [9, 3]})");
  const auto config = config_from_folder(folder.path());
  ASSERT_TRUE(config) << config.message();
  EXPECT_EQ(config->eos, (std::vector<TokenId>{3, 9}));
}

TEST(ConfigFolder, NamesTheFileThatIsWrong) {
  const TempFolder folder;
  EXPECT_NE(config_from_folder(folder.path()).message().find("no config.json"), std::string::npos);
  folder.write("config.json", "{\"model_type\":");
  EXPECT_NE(config_from_folder(folder.path()).message().find("config.json is not valid JSON"), std::string::npos);
  folder.write("config.json", std::string(200, '['));
  EXPECT_NE(config_from_folder(folder.path()).message().find("nested deeper"), std::string::npos);
  folder.write("config.json", good().dump());
  folder.write("generation_config.json", R"({"eos_token_id": "x"})");
  const std::string message = config_from_folder(folder.path()).message();
  EXPECT_NE(message.find("generation_config.json: \"eos_token_id\""), std::string::npos) << message;
}

}  // namespace
}  // namespace steadfast
