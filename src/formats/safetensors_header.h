// The JSON header of one safetensors file, and its tensors placed in the file's bytes.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/tensor_source.h"

namespace steadfast {

struct SafetensorsContents {
  std::vector<TensorView> tensors;  // in header order; data points into the given bytes
  std::map<std::string, std::size_t, std::less<>> places;
  std::map<std::string, std::string> metadata;
};

// `file` names the bytes in errors.
Result<SafetensorsContents> parse_safetensors(std::span<const std::byte> bytes, const std::string& file);

}  // namespace steadfast
