// Builds safetensors files in memory: valid ones, and any header over any data for files that lie.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/bytes.h"
#include "tensor/dtype.h"

namespace steadfast::test {

class SafetensorsBuilder {
 public:
  SafetensorsBuilder& add_tensor(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                                 Bytes data);
  SafetensorsBuilder& add_tensor(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                                 const std::vector<float>& values);  // F32, F16, BF16
  SafetensorsBuilder& add_metadata(const std::string& key, const std::string& value);

  Bytes build() const;

 private:
  std::map<std::string, std::string> metadata_;
  std::string entries_;  // JSON members, each followed by a comma
  Bytes data_;
};

// The length, the header as it is, the data as it is.
Bytes safetensors_bytes(std::string_view header, const Bytes& data);

}  // namespace steadfast::test
