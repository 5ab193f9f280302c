// A model of random weights, made in memory: speed and the row law on shapes of any size without a checkpoint. The
// shapes and the scale of the weights are tools/make_model.py's (qwen3_5 hybrids in MLX-affine form, 4 bits, groups of
// 64): an expanded matrix has mean 0 and deviation about 1 / sqrt(inputs). Tensors are views at different offsets of a
// few shared random blocks, so a model of 15 GB needs less than 2 GB here. What it writes means nothing.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "formats/tensor_source.h"

namespace steadfast {

struct RandomModel {
  nlohmann::json config;  // as config.json
  std::unique_ptr<TensorSource> tensors;
};

// preset: "qwen3.5-27b", "qwen3.5-9b", "qwen3.5-0.8b" or "tiny"; "-LAYERS" behind it keeps that many layers
// ("qwen3.5-27b-8"). The same name gives the same model. Errors list the presets.
Result<RandomModel> make_random_model(const std::string& preset);

}  // namespace steadfast
