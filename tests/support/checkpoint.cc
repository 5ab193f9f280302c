// Reading through the program's own reader, writing through the tests' builder.
#include "support/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>

#include "formats/safetensors.h"
#include "support/encode.h"
#include "support/safetensors_builder.h"

namespace steadfast::test {

std::vector<double> StoredTensor::doubles() const {
  const std::size_t size = info(dtype).block_bytes;
  std::vector<double> values(data.size() / size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::byte* p = data.data() + i * size;
    float single = 0;
    std::uint16_t half = 0;
    if (dtype == DType::kF64) {
      std::memcpy(&values[i], p, sizeof(double));
    } else if (dtype == DType::kF32) {
      std::memcpy(&single, p, sizeof single);
      values[i] = static_cast<double>(single);
    } else {
      EXPECT_TRUE(dtype == DType::kF16 || dtype == DType::kBF16) << info(dtype).name;
      std::memcpy(&half, p, sizeof half);
      values[i] = static_cast<double>(dtype == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half));
    }
  }
  return values;
}

std::vector<float> StoredTensor::floats() const {
  const auto wide = doubles();
  return {wide.begin(), wide.end()};
}

StoredTensor StoredTensor::of(DType dtype, std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return {dtype, std::move(shape), encode(dtype, values)};
}

std::map<std::string, StoredTensor> read_tensors(const std::filesystem::path& file) {
  std::map<std::string, StoredTensor> tensors;
  const auto source = SafetensorsFile::open(file);
  EXPECT_TRUE(source.is_ok()) << source.message();
  if (!source) return tensors;
  for (const std::string& name : (*source)->names()) {
    const TensorView* tensor = (*source)->find(name);
    tensors[name] = {tensor->dtype, tensor->shape, Bytes(tensor->data.begin(), tensor->data.end())};
  }
  return tensors;
}

Checkpoint Checkpoint::read(const std::filesystem::path& folder) {
  return {nlohmann::json::parse(read_text(folder / "config.json")), read_tensors(folder / "model.safetensors")};
}

void Checkpoint::write(const TempFolder& folder) const {
  SafetensorsBuilder builder;
  for (const auto& [name, tensor] : tensors) builder.add_tensor(name, tensor.dtype, tensor.shape, tensor.data);
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", builder.build());
}

std::filesystem::path golden_folder(const std::string& name) {
  return std::filesystem::path(STEADFAST_SOURCE_DIR) / "tests" / "golden" / name;
}

}  // namespace steadfast::test
