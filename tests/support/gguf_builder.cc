// Lays out GGUF version 3 (model-spec section 4.1).
#include "support/gguf_builder.h"

#include "base/check.h"
#include "support/encode.h"

namespace steadfast::test {
namespace {

std::uint32_t file_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 8;
    case DType::kI8:
      return 24;
    case DType::kI16:
      return 25;
    case DType::kI32:
      return 26;
    case DType::kI64:
      return 27;
    case DType::kF64:
      return 28;
    case DType::kBF16:
      return 30;
    default:
      break;
  }
  CHECK(false, "GGUF has no type {}", info(dtype).name);
}

void pad(Bytes& bytes, std::size_t alignment) {
  while (bytes.size() % alignment != 0) bytes.push_back(std::byte{0});
}

}  // namespace

void GgufBuilder::append_string(Bytes& bytes, std::string_view text) {
  append(bytes, static_cast<std::uint64_t>(text.size()));
  append_text(bytes, text);
}

GgufBuilder& GgufBuilder::set_alignment(std::uint32_t alignment) {
  alignment_ = alignment;
  return add_kv("general.alignment", alignment);
}

GgufBuilder& GgufBuilder::set_version(std::uint32_t version) {
  version_ = version;
  return *this;
}

GgufBuilder& GgufBuilder::set_counts(std::uint64_t tensors, std::uint64_t keys) {
  claimed_ = {tensors, keys};
  return *this;
}

GgufBuilder& GgufBuilder::add_raw_kv(std::string_view key, std::uint32_t type, const Bytes& value) {
  append_string(kv_, key);
  append(kv_, type);
  append_bytes(kv_, value);
  ++keys_;
  return *this;
}

GgufBuilder& GgufBuilder::add_entry(GgufEntry entry) {
  entries_.push_back(std::move(entry));
  return *this;
}

GgufBuilder& GgufBuilder::add_tensor(std::string name, DType dtype, const std::vector<std::int64_t>& shape,
                                     Bytes data) {
  return add_entry({std::move(name), {shape.rbegin(), shape.rend()}, file_type(dtype), {}, std::move(data)});
}

GgufBuilder& GgufBuilder::add_tensor(std::string name, DType dtype, const std::vector<std::int64_t>& shape,
                                     const std::vector<float>& values) {
  return add_tensor(std::move(name), dtype, shape, encode(dtype, values));
}

Bytes GgufBuilder::build() const {
  const auto [tensors, keys] = claimed_.value_or(std::pair<std::uint64_t, std::uint64_t>(entries_.size(), keys_));
  Bytes file;
  append_text(file, "GGUF");
  append(file, version_);
  append(file, tensors);
  append(file, keys);
  append_bytes(file, kv_);
  Bytes data;
  for (const GgufEntry& entry : entries_) {
    pad(data, alignment_);
    append_string(file, entry.name);
    append(file, static_cast<std::uint32_t>(entry.extents.size()));
    for (const std::uint64_t extent : entry.extents) append(file, extent);
    append(file, entry.type);
    append(file, entry.offset.value_or(data.size()));
    append_bytes(data, entry.data);
  }
  if (!entries_.empty()) pad(file, alignment_);
  append_bytes(file, data);
  return file;
}

}  // namespace steadfast::test
