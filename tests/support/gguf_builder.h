// Builds GGUF files in memory: valid ones by default, and ones that lie through the functions that say so.
// Use: GgufBuilder().add_kv("general.architecture", "llama").add_tensor("output.weight", DType::kQ8_0, {2, 32}, values)
// and then build(), whose bytes GgufFile::from_bytes or a temporary file takes. Shapes as in torch: [out, in].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/bytes.h"
#include "tensor/dtype.h"

namespace steadfast::test {

// One entry of the tensor table, as it is written. Without an offset the data follows the tensor before, aligned.
struct GgufEntry {
  std::string name;
  std::vector<std::uint64_t> extents;  // the file's order: fastest first
  std::uint32_t type = 0;              // the file's number of the type
  std::optional<std::uint64_t> offset;
  Bytes data;
};

class GgufBuilder {
 public:
  // A number, a truth value, a string, or a std::vector of these; the GGUF type is the one of the C++ type.
  template <typename T>
  GgufBuilder& add_kv(std::string_view key, const T& value) {
    Bytes bytes;
    const std::uint32_t type = append_value(bytes, value);
    return add_raw_kv(key, type, bytes);
  }
  // Sets general.alignment, by which build() aligns the data.
  GgufBuilder& set_alignment(std::uint32_t alignment);

  GgufBuilder& add_tensor(std::string name, DType dtype, const std::vector<std::int64_t>& shape, Bytes data);
  GgufBuilder& add_tensor(std::string name, DType dtype, const std::vector<std::int64_t>& shape,
                          const std::vector<float>& values);  // F32, F16, BF16, Q4_0, Q4_1, Q8_0

  // For files that lie: nothing is checked.
  GgufBuilder& set_version(std::uint32_t version);
  GgufBuilder& set_counts(std::uint64_t tensors, std::uint64_t keys);
  GgufBuilder& add_raw_kv(std::string_view key, std::uint32_t type, const Bytes& value);
  GgufBuilder& add_entry(GgufEntry entry);

  Bytes build() const;

 private:
  static void append_string(Bytes& bytes, std::string_view text);

  template <typename T>
  static constexpr std::uint32_t number_type() {
    if constexpr (std::is_same_v<T, bool>) return 7;
    if constexpr (std::is_same_v<T, float>) return 6;
    if constexpr (std::is_same_v<T, double>) return 12;
    constexpr std::uint32_t kUnsigned[] = {0, 2, 4, 10};
    constexpr std::uint32_t kSigned[] = {1, 3, 5, 11};
    constexpr std::size_t kWidth = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[kWidth] : kUnsigned[kWidth];
  }

  // Appends the value without its type; returns the type.
  template <typename T>
  static std::uint32_t append_value(Bytes& bytes, const T& value) {
    if constexpr (std::is_convertible_v<T, std::string_view>) {
      append_string(bytes, value);
      return 8;
    } else {
      static_assert(std::is_arithmetic_v<T>);
      append(bytes, value);
      return number_type<T>();
    }
  }

  template <typename T>
  static std::uint32_t append_value(Bytes& bytes, const std::vector<T>& values) {
    Bytes elements;
    const std::uint32_t type = append_value(elements, T{});  // known for an empty array too
    elements.clear();
    for (const T& value : values) append_value(elements, value);
    append(bytes, type);
    append(bytes, static_cast<std::uint64_t>(values.size()));
    append_bytes(bytes, elements);
    return 9;
  }

  std::uint32_t version_ = 3;
  std::uint32_t alignment_ = 32;
  std::uint64_t keys_ = 0;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> claimed_;  // tensors, keys
  Bytes kv_;
  std::vector<GgufEntry> entries_;
};

}  // namespace steadfast::test
