// ModelConfig: a model's shape in one form for all families, read from config.json or GGUF metadata (model-spec 1,
// 2, 4.5). Everything in it is checked: a config that passes describes a model that forward() can run, given its
// tensors.
#pragma once

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace steadfast {

class GgufFile;

struct RopeConfig {
  int dims = 0;                // rotated dims of a head, even
  std::vector<float> inverse;  // [dims / 2]: angle of position p is p * inverse[i], scaling included
  float position_factor = 1;   // linear scaling: positions are multiplied by it
  float magnitude = 1;         // yarn: cos and sin are multiplied by it
};

// Gated DeltaNet layers of a hybrid.
struct LinearAttentionConfig {
  int key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0, taps = 0;
};

struct ModelConfig {
  std::string family;  // "llama", "qwen2", "qwen3", "qwen3_5"
  int vocab = 0, hidden = 0, intermediate = 0, layers = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  int max_positions = 0;  // that the model was made for
  float norm_eps = 1e-6f;
  bool tied = false;  // the head is the embedding table
  bool qkv_bias = false, output_bias = false, mlp_bias = false, qk_norm = false;
  bool output_gate = false;  // attention's result is multiplied by sigmoid(gate), from a q_proj of double width
  RopeConfig rope;
  std::vector<bool> recurrent;  // of each layer: Gated DeltaNet instead of attention; empty: all attention
  LinearAttentionConfig linear;
  TokenId bos = -1;
  std::vector<TokenId> eos;
  nlohmann::json quantization;  // MLX's object, or null

  bool is_recurrent(int layer) const { return !recurrent.empty() && recurrent[static_cast<std::size_t>(layer)]; }
  int recurrent_layers() const { return static_cast<int>(std::count(recurrent.begin(), recurrent.end(), true)); }
  int query_width() const { return heads * head_dim; }
  int kv_width() const { return kv_heads * head_dim; }
};

// The folder's config.json, and generation_config.json's eos ids where there is one.
Result<ModelConfig> config_from_folder(const std::filesystem::path& folder);
Result<ModelConfig> config_from_json(const nlohmann::json& config);
Result<ModelConfig> config_from_gguf(const GgufFile& file);
// The metadata under the names of config.json, as config_from_gguf reads them; "rotary_dims" is a name of our own.
Result<nlohmann::json> gguf_as_config(const GgufFile& file);

// A JSON file, parsed with a limit on nesting; the error names the file.
Result<nlohmann::json> read_json_file(const std::filesystem::path& path);

}  // namespace steadfast
