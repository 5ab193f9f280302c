// Hybrids and quantised models whose configuration or tensors do not fit: each is refused with one sentence that names
// the field, module or tensor. The models are goldens with one thing changed.
#include <gtest/gtest.h>

#include "engine/load_model.h"
#include "support/checkpoint.h"

namespace steadfast::test {
namespace {

constexpr const char* kHybrid = "hybrid-e-unequal-dims";         // hidden 80, layers alternate, recurrent first
constexpr const char* kMultimodal = "hybrid-f-multimodal-form";  // text_config, vision, MTP
constexpr const char* kQuantised = "mlx-hybrid-mixed";           // hidden 128
const std::string kBody = "language_model.model.layers.0.";

const Checkpoint& original(const std::string& name) {
  static std::map<std::string, Checkpoint> cache;
  if (!cache.contains(name)) cache[name] = Checkpoint::read(golden_folder(name));
  return cache[name];
}

Status load(const Checkpoint& checkpoint) {
  const TempFolder folder;
  checkpoint.write(folder);
  LoadOptions options;
  options.threads = 1;
  options.act = Act::kF32;
  const auto loaded = load_model(folder.path(), options);
  return loaded ? Status::ok() : loaded.status();
}

struct Fault {
  std::string what;  // for the test's output
  std::string model;
  std::function<void(Checkpoint&)> change;
  std::vector<std::string> parts;  // of the sentence
};

void expect_refused(const Fault& fault) {
  Checkpoint checkpoint = original(fault.model);
  fault.change(checkpoint);
  const Status status = load(checkpoint);
  ASSERT_FALSE(status.is_ok()) << fault.what;
  for (const std::string& part : fault.parts)
    EXPECT_NE(status.message().find(part), std::string::npos) << fault.what << ": " << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << fault.what;
  EXPECT_LT(status.message().size(), 300u) << fault.what;
}

TEST(MalformedHybrid, UnchangedModelsLoad) {
  for (const char* name : {kHybrid, kMultimodal, kQuantised})
    EXPECT_TRUE(load(original(name)).is_ok()) << name << ": " << load(original(name)).message();
}

std::function<void(Checkpoint&)> field(const char* key, nlohmann::json value) {
  return [key, value](Checkpoint& c) { c.config[key] = value; };
}

std::function<void(Checkpoint&)> without(const char* key) {
  return [key](Checkpoint& c) { c.config.erase(key); };
}

TEST(MalformedHybrid, Configurations) {
  const std::vector<Fault> faults = {
      {"too few layer types", kHybrid, field("layer_types", {"linear_attention"}), {"\"layer_types\"", "6 layers"}},
      {"layer types of no list", kHybrid, field("layer_types", "linear_attention"), {"\"layer_types\"", "6 layers"}},
      {"unknown layer type",
       kHybrid,
       [](Checkpoint& c) { c.config["layer_types"][2] = "mamba"; },
       {"\"layer_types\"", "layer 2", "mamba"}},
      {"layer type of no text",
       kHybrid,
       [](Checkpoint& c) { c.config["layer_types"][2] = 7; },
       {"\"layer_types\"", "layer 2"}},
      {"interval of 0", kHybrid, field("full_attention_interval", 0), {"\"full_attention_interval\""}},
      {"heads that do not divide",
       kHybrid,
       field("linear_num_value_heads", 7),
       {"\"linear_num_value_heads\" 7", "\"linear_num_key_heads\" 3"}},
      {"no key heads", kHybrid, without("linear_num_key_heads"), {"\"linear_num_key_heads\" is missing"}},
      {"no value heads", kHybrid, without("linear_num_value_heads"), {"\"linear_num_value_heads\" is missing"}},
      {"no key dim", kHybrid, without("linear_key_head_dim"), {"\"linear_key_head_dim\" is missing"}},
      {"no value dim", kHybrid, without("linear_value_head_dim"), {"\"linear_value_head_dim\" is missing"}},
      {"key dim of 24", kHybrid, field("linear_key_head_dim", 24), {"\"linear_key_head_dim\" 24", "multiple of 16"}},
      {"huge value dim", kHybrid, field("linear_value_head_dim", 100000), {"\"linear_value_head_dim\""}},
      {"negative heads", kHybrid, field("linear_num_key_heads", -3), {"\"linear_num_key_heads\""}},
      {"one tap", kHybrid, field("linear_conv_kernel_dim", 1), {"\"linear_conv_kernel_dim\""}},
      {"other taps than the weight's",
       kHybrid,
       field("linear_conv_kernel_dim", 3),
       {"layers.0.linear_attn.conv1d.weight", "[240, 1, 3]"}},
      {"other gate", kHybrid, field("output_gate_type", "tanh"), {"\"output_gate_type\"", "tanh"}},
      {"other activation", kHybrid, field("hidden_act", "gelu"), {"hidden_act", "gelu"}},
      {"ungated attention", kHybrid, field("attn_output_gate", false), {"layers.1.self_attn.q_proj"}},
      {"more layers than tensors",
       kHybrid,
       [](Checkpoint& c) {
         c.config.erase("layer_types");
         c.config["num_hidden_layers"] = 8;
       },
       {"layers.6.input_layernorm.weight"}},
      {"kinds of layers exchanged",
       kHybrid,
       [](Checkpoint& c) { std::swap(c.config["layer_types"][0], c.config["layer_types"][1]); },
       {"layers.0.self_attn."}},
      {"text_config of no object", kMultimodal, field("text_config", {1, 2}), {"\"text_config\" must be an object"}},
      {"text_config of text", kMultimodal, field("text_config", "qwen"), {"\"text_config\" must be an object"}},
  };
  for (const Fault& fault : faults) expect_refused(fault);
}

TEST(MalformedHybrid, EachMissingTensorIsNamed) {
  for (const auto& [name, tensor] : original(kHybrid).tensors) {
    const bool table = name == "model.embed_tokens.weight";
    if (name.find("layers.") != std::string::npos && name.find("layers.0.") == std::string::npos &&
        name.find("layers.1.") == std::string::npos)
      continue;
    const std::string gone = name;
    expect_refused(
        {name, kHybrid, [gone](Checkpoint& c) { c.tensors.erase(gone); }, {table ? "embed_tokens.weight" : name}});
  }
}

TEST(MalformedHybrid, EachTensorOfAnotherShapeIsNamed) {
  for (const auto& [name, tensor] : original(kHybrid).tensors) {
    if (name.find("layers.0.") == std::string::npos && name.find("layers.1.") == std::string::npos) continue;
    const std::string changed = name;
    const auto grow = [changed](Checkpoint& c) {
      StoredTensor& t = c.tensors.at(changed);
      const std::size_t row = t.data.size() / static_cast<std::size_t>(t.shape[0]);
      t.shape[0] += 1;
      t.data.resize(t.data.size() + row);
    };
    expect_refused({name, kHybrid, grow, {name.substr(0, name.rfind('.'))}});
  }
}

void reshape(Checkpoint& c, const std::string& name, std::vector<std::int64_t> shape) {
  c.tensors.at(name).shape = std::move(shape);
}

TEST(MalformedHybrid, Convolutions) {
  const std::string first = "model.layers.0.linear_attn.conv1d.weight",
                    later = "model.layers.2.linear_attn.conv1d.weight";
  const std::vector<Fault> faults = {
      {"taps first",
       kHybrid,
       [&](Checkpoint& c) {
         reshape(c, first, {4, 1, 240});
       },
       {first, "[4, 1, 240]", "[240, 1, 4]"}},
      {"flat", kHybrid, [&](Checkpoint& c) { reshape(c, first, {960}); }, {first, "[960]"}},
      {"two layouts",
       kHybrid,
       [&](Checkpoint& c) {
         reshape(c, later, {240, 4, 1});
       },
       {later, "the same in every layer"}},
      {"integers", kHybrid, [&](Checkpoint& c) { c.tensors.at(first).dtype = DType::kU16; }, {first, "U16"}},
  };
  for (const Fault& fault : faults) expect_refused(fault);
}

std::function<void(Checkpoint&)> entry(const char* module, nlohmann::json value) {
  return [module, value](Checkpoint& c) { c.config["quantization"][kBody + module] = value; };
}

TEST(MalformedQuantisation, Configurations) {
  const std::string z = kBody + "linear_attn.in_proj_z";
  std::vector<Fault> faults = {
      {"no object", kQuantised, field("quantization", 4), {"\"quantization\" must be an object"}},
      {"another program's",
       kQuantised,
       [](Checkpoint& c) {
         c.config.erase("quantization");
         c.config["quantization_config"] = {{"quant_method", "gptq"}};
       },
       {"\"quantization_config\"", "gptq", "not supported"}},
      {"none",
       kQuantised,
       [](Checkpoint& c) {
         c.config.erase("quantization");
         c.config.erase("quantization_config");
       },
       {"language_model.model.embed_tokens has scales", "\"quantization\""}},
      {"entry of text", kQuantised, entry("linear_attn.in_proj_z", "4 bits"), {z, "must be an object, true or false"}},
      {"entry of a number", kQuantised, entry("linear_attn.in_proj_z", 4), {z, "must be an object, true or false"}},
      {"false with scales", kQuantised, entry("linear_attn.in_proj_z", false), {z, "not quantised (false)", "scales"}},
      {"an entry without scales",
       kQuantised,
       entry("linear_attn.in_proj_b", {{"bits", 4}}),
       {kBody + "linear_attn.in_proj_b.scales"}},
      {"true without scales",
       kQuantised,
       entry("linear_attn.in_proj_b", true),
       {kBody + "linear_attn.in_proj_b.scales"}},
      {"mxfp4",
       kQuantised,
       entry("linear_attn.in_proj_z", {{"bits", 4}, {"group_size", 32}, {"mode", "mxfp4"}}),
       {z, "\"mxfp4\"", "not supported"}},
      {"mxfp4 for all",
       kQuantised,
       [](Checkpoint& c) {
         c.config["quantization"] = {{"bits", 4}, {"group_size", 32}, {"mode", "mxfp4"}};
       },
       {"embed_tokens", "\"mxfp4\"", "not supported"}},
      {"mode of a number", kQuantised, entry("linear_attn.in_proj_z", {{"mode", 4}}), {z, "\"mode\""}},
      {"bits of text", kQuantised, entry("linear_attn.in_proj_z", {{"bits", "4"}}), {z, "\"bits\""}},
      {"other bits than the shapes'",
       kQuantised,
       entry("linear_attn.in_proj_z", {{"bits", 5}, {"group_size", 64}}),
       {z, "at 5 bits", "it has 4 bits"}},
      {"other groups than the shapes'",
       kQuantised,
       entry("linear_attn.in_proj_z", {{"bits", 4}, {"group_size", 32}}),
       {z, "groups of 32", "it has 8 bits"}},
      {"both wrong, width too",
       kQuantised,
       entry("linear_attn.in_proj_z", {{"bits", 8}, {"group_size", 32}}),
       {z, "128 by 64", "128 by 128"}},
  };
  for (const int bits : {1, 7, 9, 0, -4, 1000})
    faults.push_back({std::to_string(bits) + " bits",
                      kQuantised,
                      entry("linear_attn.in_proj_z", {{"bits", bits}, {"group_size", 64}}),
                      {z, "bits"}});
  for (const int group : {0, 16, 48, 63, 256, -1})
    faults.push_back({std::to_string(group) + " a group",
                      kQuantised,
                      entry("linear_attn.in_proj_z", {{"bits", 4}, {"group_size", group}}),
                      {z, "group"}});
  for (const Fault& fault : faults) expect_refused(fault);
}

TEST(MalformedQuantisation, Tensors) {
  const std::string z = kBody + "linear_attn.in_proj_z";
  const auto set = [z](const char* part, DType dtype, std::vector<std::int64_t> shape) {
    return [=](Checkpoint& c) {
      std::size_t count = 1;
      for (const auto extent : shape) count *= static_cast<std::size_t>(extent);
      c.tensors[z + part] = {dtype, shape, Bytes(count * info(dtype).block_bytes)};
    };
  };
  const auto drop = [z](const char* part) { return [=](Checkpoint& c) { c.tensors.erase(z + part); }; };
  const std::vector<Fault> faults = {
      {"no scales", kQuantised, drop(".scales"), {z + ".scales"}},
      {"no biases", kQuantised, drop(".biases"), {z + ".biases"}},
      {"no words", kQuantised, drop(".weight"), {z + ".weight"}},
      {"scales of a vector", kQuantised, set(".scales", DType::kBF16, {256}), {z, "matrix of scales"}},
      {"scales of fewer rows", kQuantised, set(".scales", DType::kBF16, {64, 2}), {z, "[64, 2]", "do not fit"}},
      {"scales of more groups", kQuantised, set(".scales", DType::kBF16, {128, 4}), {z, "[128, 4]", "do not fit"}},
      {"biases of more groups", kQuantised, set(".biases", DType::kBF16, {128, 4}), {z, "[128, 4]", "do not fit"}},
      {"scales of bytes", kQuantised, set(".scales", DType::kU8, {128, 2}), {z, "U8"}},
      {"biases of another type", kQuantised, set(".biases", DType::kF16, {128, 2}), {z, "F16"}},
      {"signed words", kQuantised, set(".weight", DType::kI32, {128, 16}), {z, "I32"}},
      {"fewer words", kQuantised, set(".weight", DType::kU32, {128, 15}), {z, "it has 3.75 bits"}},
      {"no rows",
       kQuantised,
       [&](Checkpoint& c) {
         for (const char* part : {".weight", ".scales", ".biases"})
           set(part, c.tensors.at(z + part).dtype, {0, part[1] == 'w' ? 16 : 2})(c);
       },
       {z}},
      {"a quantised convolution",
       kQuantised,
       [](Checkpoint& c) { c.tensors.at(kBody + "linear_attn.conv1d.weight").dtype = DType::kI16; },
       {"conv1d.weight", "I16"}},
  };
  for (const Fault& fault : faults) expect_refused(fault);
}

TEST(MalformedMtp, EachMissingTensorIsNamed) {
  int missing = 0;
  for (const auto& [name, tensor] : original(kMultimodal).tensors) {
    if (name.rfind("mtp.", 0) != 0) continue;
    const std::string gone = name;
    expect_refused({name, kMultimodal, [gone](Checkpoint& c) { c.tensors.erase(gone); }, {"MTP head", name}});
    ++missing;
  }
  EXPECT_EQ(missing, 15);
}

TEST(MalformedMtp, NoneIsWhole) {
  Checkpoint checkpoint = original(kMultimodal);
  std::erase_if(checkpoint.tensors, [](const auto& one) { return one.first.rfind("mtp.", 0) == 0; });
  EXPECT_TRUE(load(checkpoint).is_ok());
}

// false, true and the copy under the other key are honoured.
TEST(QuantisationEntries, FalseAndTrueAreHonoured) {
  Checkpoint checkpoint = original(kQuantised);
  checkpoint.config["quantization"][kBody + "linear_attn.in_proj_b"] = false;
  checkpoint.config["quantization"][kBody + "linear_attn.in_proj_z"] = true;
  EXPECT_TRUE(load(checkpoint).is_ok()) << load(checkpoint).message();
  checkpoint.config["quantization_config"] = checkpoint.config["quantization"];
  checkpoint.config.erase("quantization");
  EXPECT_TRUE(load(checkpoint).is_ok()) << load(checkpoint).message();
}

}  // namespace
}  // namespace steadfast::test
