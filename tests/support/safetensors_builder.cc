// Lays out safetensors (model-spec section 5) without padding, so that data may be unaligned, as some writers leave it.
#include "support/safetensors_builder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/encode.h"

namespace steadfast::test {

SafetensorsBuilder& SafetensorsBuilder::add_tensor(const std::string& name, DType dtype,
                                                   const std::vector<std::int64_t>& shape, Bytes data) {
  entries_ += fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}},)", nlohmann::json(name).dump(),
                          info(dtype).name, nlohmann::json(shape).dump(), data_.size(), data_.size() + data.size());
  append_bytes(data_, data);
  return *this;
}

SafetensorsBuilder& SafetensorsBuilder::add_tensor(const std::string& name, DType dtype,
                                                   const std::vector<std::int64_t>& shape,
                                                   const std::vector<float>& values) {
  return add_tensor(name, dtype, shape, encode(dtype, values));
}

SafetensorsBuilder& SafetensorsBuilder::add_metadata(const std::string& key, const std::string& value) {
  metadata_[key] = value;
  return *this;
}

Bytes SafetensorsBuilder::build() const {
  std::string members = entries_;
  if (!metadata_.empty()) members += fmt::format(R"("__metadata__":{},)", nlohmann::json(metadata_).dump());
  if (!members.empty()) members.pop_back();
  return safetensors_bytes("{" + members + "}", data_);
}

Bytes safetensors_bytes(std::string_view header, const Bytes& data) {
  Bytes file;
  append(file, static_cast<std::uint64_t>(header.size()));
  append_text(file, header);
  append_bytes(file, data);
  return file;
}

}  // namespace steadfast::test
