// config.json and generation_config.json of a result folder.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/gguf.h"
#include "model/config.h"

namespace steadfast {

// A Hugging Face folder's config.json in MLX's form: without vision, hybrids with their fields under text_config
// (model-spec 1.9); quantization may be null.
nlohmann::json mlx_config(nlohmann::json config, const ModelConfig& model, const nlohmann::json& quantization);

// The same from GGUF metadata. An error where config.json has no words for what the file says.
Result<nlohmann::json> mlx_config(const GgufFile& file, const ModelConfig& model, const nlohmann::json& quantization);

// The sampling defaults beside the .gguf file, if there are any, with the model's bos and eos ids.
Result<nlohmann::json> generation_config(const std::filesystem::path& gguf, const ModelConfig& model);

// Whether two configurations describe the same arithmetic; the error names the first field that differs.
Status same_model(const ModelConfig& written, const ModelConfig& source);

}  // namespace steadfast
