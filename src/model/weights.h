// The weights of a model on a backend: packed linears, norm vectors, the embedding table and the head.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "formats/tensor_source.h"
#include "model/config.h"
#include "model/naming.h"

namespace steadfast {

struct Linear {
  std::unique_ptr<Weight> weight;
  const float* bias = nullptr;  // device memory
};

struct LayerWeights {
  const float *input_norm = nullptr, *post_norm = nullptr;  // [hidden]
  Linear gate, up, down;                                    // the MLP
  // Attention layers.
  const float *query_norm = nullptr, *key_norm = nullptr;  // [head_dim], families with qk_norm
  Linear query, query_gate, key, value, output;            // query_gate: families with output_gate
  // Recurrent layers.
  Linear delta_mixed, delta_z, delta_b, delta_a, delta_output;
  DeltaWeights delta;
  const float* delta_norm = nullptr;  // [value_dim]
};

class ModelWeights {
 public:
  using Progress = std::function<void(int done, int total)>;  // layers packed

  // Every tensor is checked against the config's shape; errors name the module. digest: XXH3 of names and bytes.
  static Result<ModelWeights> load(const ModelConfig& config, const TensorSource& source, const Naming& naming,
                                   Backend& backend, const Progress& progress);

  const Weight& embedding() const { return *embedding_; }
  const Weight& head() const { return head_ ? *head_ : *embedding_; }
  const float* final_norm() const { return final_norm_; }
  // GGUF files hold the value heads of a hybrid in another order (model-spec 1.10).
  bool tiled_heads() const { return tiled_heads_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  const std::string& digest() const { return digest_; }
  std::size_t bytes() const;
  // What the file holds that the model does not read, one sentence a kind.
  const std::vector<std::string>& notes() const { return notes_; }
  // For `info`: each module's format, in order.
  std::vector<std::pair<std::string, const Weight*>> modules() const;

 private:
  friend class WeightLoader;
  std::unique_ptr<Weight> embedding_, head_;
  const float* final_norm_ = nullptr;
  std::vector<LayerWeights> layers_;
  std::vector<std::unique_ptr<DeviceMemory>> vectors_;
  std::string digest_;
  std::vector<std::string> notes_;
  bool tiled_heads_ = false;
};

}  // namespace steadfast
