// Reads little-endian numbers and strings of GGUF one after the other, never past the end of the bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace steadfast {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read as they lie in the file");

// A read that does not fit returns false.
class GgufCursor {
 public:
  explicit GgufCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return bytes_.size() - at_; }

  template <typename T>
  bool read(T& value) {
    if (left() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }

  bool read(std::string_view& text) {
    std::uint64_t length = 0;
    if (!read(length) || length > left()) return false;
    text = {reinterpret_cast<const char*>(bytes_.data()) + at_, static_cast<std::size_t>(length)};
    at_ += length;
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
};

}  // namespace steadfast
