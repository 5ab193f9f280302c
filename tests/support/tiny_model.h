// A random llama small enough to make in a test: its tensors under Hugging Face's names, as a folder and as GGUF.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/gguf_builder.h"
#include "support/temp_folder.h"

namespace steadfast::test {

struct TinyModel {
  struct Tensor {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };

  // Weights that give logits of some variety: no row of them is nearly tied.
  static TinyModel random(std::uint64_t seed, bool biases = false, int vocab = 96);

  int vocab = 96, hidden = 64, intermediate = 80, layers = 2, heads = 4, kv_heads = 2, head_dim = 16;
  int max_positions = 128;
  nlohmann::json config;                  // config.json
  std::map<std::string, Tensor> tensors;  // by Hugging Face's name

  // config.json and model.safetensors (F32) in the folder.
  void write(const TempFolder& folder) const;
  // The same model as a GGUF file (F32), q and k rows in GGUF's order (model-spec 4.4).
  GgufBuilder gguf() const;
};

}  // namespace steadfast::test
