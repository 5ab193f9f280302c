// Reader of GGUF files, versions 2 and 3. Source: model-spec section 4 (ggml docs/gguf.md).
// The file is memory-mapped and untrusted: every count, size, offset, string and nesting is checked before use.
// Opening reads the metadata alone. Tensors may be F32, F16, BF16, Q4_0, Q4_1 and Q8_0; another type is an error. Keys
// and tensor names are UTF-8 without control characters; string values are bytes as they lie in the file, unchecked.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "formats/tensor_source.h"

namespace steadfast {

struct GgufValue;
using GgufArray = std::vector<GgufValue>;
// Integers of every width are kept as signed or unsigned 64 bits. Large arrays of strings are string_views into the
// map.
struct GgufValue {
  std::variant<std::int64_t, std::uint64_t, double, bool, std::string_view, std::shared_ptr<const GgufArray>> value;

  std::optional<std::int64_t> as_int() const;  // any integer that fits
  std::optional<double> as_float() const;      // any number
  std::optional<bool> as_bool() const;
  std::optional<std::string_view> as_string() const;
  const GgufArray* as_array() const;  // nullptr: not an array
};

class GgufFile : public TensorSource {
 public:
  static Result<std::shared_ptr<const GgufFile>> open(const std::filesystem::path& path);
  // For tests and fuzzing: the same reader over bytes in memory, which must outlive it.
  static Result<std::shared_ptr<const GgufFile>> from_bytes(std::span<const std::byte> bytes, std::string name);

  const GgufValue* value(std::string_view key) const;  // nullptr: not there
  // All keys in file order.
  std::vector<std::string_view> keys() const;

  const TensorView* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  void release(const TensorView& tensor) const override;
  void will_need(const TensorView& tensor) const override;

 private:
  GgufFile();
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace steadfast
