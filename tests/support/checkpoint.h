// A model's folder held in memory, so that a test can change what a file says: the configuration, a tensor's bytes.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/bytes.h"
#include "support/temp_folder.h"
#include "tensor/dtype.h"

namespace steadfast::test {

struct StoredTensor {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  Bytes data;

  // F64, F32, F16 and BF16, widened; a failed expectation otherwise.
  std::vector<double> doubles() const;
  std::vector<float> floats() const;
  // A tensor of these values, rounded to dtype (F32, F16 or BF16).
  static StoredTensor of(DType dtype, std::vector<std::int64_t> shape, const std::vector<float>& values);
};

// The tensors of one safetensors file; a failed expectation and none if it cannot be read.
std::map<std::string, StoredTensor> read_tensors(const std::filesystem::path& file);

struct Checkpoint {
  nlohmann::json config;
  std::map<std::string, StoredTensor> tensors;

  // config.json and model.safetensors of the folder.
  static Checkpoint read(const std::filesystem::path& folder);
  void write(const TempFolder& folder) const;
};

// tests/golden, or a folder in it.
std::filesystem::path golden_folder(const std::string& name = "");

}  // namespace steadfast::test
