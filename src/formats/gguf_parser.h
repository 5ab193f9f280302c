// The parts of a GGUF file, found in one pass over its metadata. Names, strings and data point into the given bytes.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"

namespace steadfast {

struct GgufContents {
  std::vector<std::string_view> keys;  // in file order
  std::map<std::string_view, GgufValue> values;
  std::vector<TensorView> tensors;                 // in file order
  std::map<std::string_view, std::size_t> places;  // a tensor's name: its place in `tensors`
};

// `file` names the bytes in errors.
Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, const std::string& file);

}  // namespace steadfast
