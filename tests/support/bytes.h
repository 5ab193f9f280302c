// Little-endian bytes put one after the other.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace steadfast::test {

using Bytes = std::vector<std::byte>;

template <typename T>
void append(Bytes& bytes, const T& number) {
  const auto raw = std::as_bytes(std::span(&number, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

inline void append_text(Bytes& bytes, std::string_view text) {
  const auto raw = std::as_bytes(std::span(text.data(), text.size()));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

inline void append_bytes(Bytes& bytes, std::span<const std::byte> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

}  // namespace steadfast::test
