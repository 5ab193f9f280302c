// The promises of the readers, checked on whatever they accept.
#include "formats_probe.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"

namespace steadfast::test {
namespace {

// Keeps the reads of a probe from being optimised away.
volatile unsigned sink = 0;

void read(std::string_view text) {
  sink = std::accumulate(text.begin(), text.end(), sink,
                         [](unsigned sum, char byte) { return sum + static_cast<unsigned char>(byte); });
}

void read(const GgufValue& value) {
  if (const auto text = value.as_string()) read(*text);
  sink = sink + value.as_int().has_value() + value.as_float().has_value() + value.as_bool().has_value();
  if (const GgufArray* array = value.as_array()) {
    for (const GgufValue& element : *array) read(element);
  }
}

void check_tensors(const TensorSource& source, std::span<const std::byte> bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const std::string& name : source.names()) {
    const TensorView* tensor = source.find(name);
    CHECK(tensor != nullptr && tensor->name == name, "{} is listed and not found", name);
    const DTypeInfo& type = info(tensor->dtype);
    const auto elements = static_cast<std::size_t>(tensor->elements());
    CHECK(elements % type.block_elements == 0, "{} elements in blocks of {}", elements, type.block_elements);
    CHECK(tensor->data.size() == elements / type.block_elements * type.block_bytes, "{} bytes", tensor->data.size());
    if (tensor->data.empty()) continue;
    const auto begin = static_cast<std::size_t>(tensor->data.data() - bytes.data());
    CHECK(begin < bytes.size() && tensor->data.size() <= bytes.size() - begin, "{} lies outside the file", name);
    ranges.emplace_back(begin, begin + tensor->data.size());
    read({reinterpret_cast<const char*>(tensor->data.data()), tensor->data.size()});
    source.release(*tensor);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) CHECK(ranges[i - 1].second <= ranges[i].first, "tensors overlap");
}

// A copy in a block of exactly its size: a sanitizer sees a read of one byte past it.
class Exact {
 public:
  explicit Exact(std::span<const std::byte> bytes) : size_(bytes.size()), data_(new std::byte[bytes.size()]) {
    std::copy(bytes.begin(), bytes.end(), data_.get());
  }
  std::span<const std::byte> span() const { return {data_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> data_;
};

template <typename File>
void check_refusal(const Result<File>& file) {
  const std::string& message = file.message();
  CHECK(message.starts_with("fuzz: ") && message.size() < 1000, "a poor sentence: {}", message);
  CHECK(std::none_of(message.begin(), message.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x20; }),
        "control characters in: {}", message);
}

}  // namespace

bool probe_gguf(std::span<const std::byte> bytes) {
  const Exact copy(bytes);
  const auto file = GgufFile::from_bytes(copy.span(), "fuzz");
  if (!file) {
    check_refusal(file);
    return false;
  }
  for (const std::string_view key : (*file)->keys()) {
    const GgufValue* value = (*file)->value(key);
    CHECK(value != nullptr, "{} is listed and not found", key);
    read(key);
    read(*value);
  }
  check_tensors(**file, copy.span());
  return true;
}

bool probe_safetensors(std::span<const std::byte> bytes) {
  const Exact copy(bytes);
  const auto file = SafetensorsFile::from_bytes(copy.span(), "fuzz");
  if (!file) {
    check_refusal(file);
    return false;
  }
  for (const auto& [key, value] : (*file)->metadata()) {
    read(key);
    read(value);
  }
  check_tensors(**file, copy.span());
  return true;
}

}  // namespace steadfast::test
