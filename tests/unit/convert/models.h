// What the tests of conversions share: the golden models as GGUF files, conversions that must succeed, logits.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convert/convert.h"
#include "engine/load_model.h"
#include "formats/safetensors.h"
#include "support/gguf_builder.h"
#include "support/temp_folder.h"

namespace steadfast::test {

std::filesystem::path golden(const std::string& name);  // a folder of tests/golden
nlohmann::json json_of(const std::filesystem::path& path);

// The GGUF type of a tensor by its name in the GGUF file; matrices only, vectors and convolutions are F32.
using TypeOf = std::function<DType(const std::string& gguf_name)>;
// A golden folder as llama.cpp's converter writes it: names, rotated pairs of llama, tiled value heads, norms 1 + w.
GgufBuilder gguf_of_golden(const std::string& name, const TypeOf& type_of);
std::filesystem::path write_gguf(const TempFolder& folder, const GgufBuilder& builder);

// Fails the test where the conversion fails.
ConvertReport convert(const std::filesystem::path& in, const std::filesystem::path& out, ConvertOptions options = {});
// Logits of some forty ids; fails the test where the model does not load.
std::vector<float> logits_of(const std::filesystem::path& model, Act act);
// "equal", or how many values differ in their bits.
std::string difference(const std::vector<float>& a, const std::vector<float>& b);
// |a - b| / |b|, Euclidean.
double relative_distance(const std::vector<float>& a, const std::vector<float>& b);

// Float values of a tensor (F32, F16, BF16).
std::vector<float> floats_of(const TensorView& tensor);
std::shared_ptr<const SafetensorsFolder> tensors_of(const std::filesystem::path& folder);

}  // namespace steadfast::test
