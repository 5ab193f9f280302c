// What `info` says of a hybrid: layers of each kind, formats by kind of module, recurrent state, what was not read.
#include "engine/describe.h"

#include <gtest/gtest.h>

#include "support/checkpoint.h"
#include "support/tiny_model.h"

namespace steadfast::test {
namespace {

nlohmann::ordered_json described(const std::filesystem::path& path, int context) {
  LoadOptions options;
  options.threads = 1;
  const auto loaded = load_model(path, options);
  EXPECT_TRUE(loaded.is_ok()) << loaded.message();
  return loaded ? describe(**loaded, context) : nlohmann::ordered_json();
}

bool has_note(const nlohmann::ordered_json& json, const std::string& start, const std::string& part) {
  for (const std::string note : json["notes"])
    if (note.rfind(start, 0) == 0 && note.find(part) != std::string::npos) return true;
  return false;
}

TEST(Describe, HybridsLayersStateAndStream) {
  const auto json = described(golden_folder("hybrid-e-unequal-dims"), 100);
  EXPECT_EQ(json["layers"], 6);
  EXPECT_EQ(json["attention_layers"], 3);
  EXPECT_EQ(json["recurrent_layers"], 3);
  EXPECT_EQ(json["recurrence"]["value_heads"], 6);
  EXPECT_EQ(json["recurrence"]["key_dim"], 16);
  // 3 layers of 3 rows of 240 and 6 states of 16 by 24, padded to 32, in float32.
  const int state = 3 * (3 * 240 + 6 * 16 * 32) * 4, position = 3 * 2 * 5 * 32 * 2;
  EXPECT_EQ(json["state_bytes"], state);
  EXPECT_EQ(json["kv_bytes_per_position"], position);
  EXPECT_EQ(json["stream_bytes"], 128 * position + state) << "windows are of 64 positions";
}

TEST(Describe, FormatsByKindOfModule) {
  const auto json = described(golden_folder("mlx-hybrid-mixed"), 16);
  const auto& modules = json["modules"];
  const auto count = [&](const char* kind) {
    int all = 0;
    for (const auto& [format, of_format] : modules.at(kind).items()) all += of_format.get<int>();
    return all;
  };
  EXPECT_EQ(count("embed_tokens"), 1);
  EXPECT_EQ(count("lm_head"), 1);
  EXPECT_EQ(count("mlp.gate_proj"), 4);
  EXPECT_EQ(count("self_attn.q_proj"), 1);
  EXPECT_EQ(count("self_attn.q_proj (gate)"), 1);
  EXPECT_EQ(count("linear_attn.in_proj_qkv"), 3);
  EXPECT_EQ(modules["linear_attn.in_proj_qkv"].size(), 2u) << "2 bits in one layer, 4 in the others: " << modules;
  EXPECT_NE(modules["linear_attn.in_proj_qkv"].dump().find("2 bits"), std::string::npos) << modules;
  EXPECT_EQ(modules["mlp.gate_proj"].size(), 2u) << modules;
}

TEST(Describe, DenseModelsHaveNoState) {
  const TempFolder folder;
  TinyModel::random(3).write(folder);
  const auto json = described(folder.path(), 16);
  EXPECT_EQ(json["attention_layers"], json["layers"]);
  EXPECT_EQ(json["recurrent_layers"], 0);
  EXPECT_FALSE(json.contains("recurrence"));
  EXPECT_EQ(json["state_bytes"], 0);
  for (const std::string note : json["notes"]) EXPECT_EQ(note.find("tensor"), std::string::npos) << note;
}

TEST(Describe, NotesTensorsThatWereNotRead) {
  Checkpoint checkpoint = Checkpoint::read(golden_folder("hybrid-f-multimodal-form"));
  const StoredTensor one = StoredTensor::of(DType::kF32, {2}, {1, 2});
  checkpoint.tensors["model.language_model.layers.3.self_attn.rotary_emb.inv_freq"] = one;
  checkpoint.tensors["model.language_model.layers.0.mlp.extra_proj.weight"] = one;
  checkpoint.tensors["lm_head.weight"] = one;
  const TempFolder folder;
  checkpoint.write(folder);
  const auto json = described(folder.path(), 16);
  EXPECT_TRUE(has_note(json, "4 tensors of the vision part", "model.visual.")) << json["notes"];
  EXPECT_TRUE(has_note(json, "15 tensors of the MTP head", "drafting")) << json["notes"];
  EXPECT_TRUE(has_note(json, "1 tensor of lm_head.weight", "tied")) << json["notes"];
  EXPECT_TRUE(has_note(json, "1 tensor of rotary frequencies", "computed")) << json["notes"];
  EXPECT_TRUE(has_note(json, "1 tensor not used by this family", "mlp.extra_proj.weight")) << json["notes"];
}

}  // namespace
}  // namespace steadfast::test
