// One change at a time, each drawn from the generator alone.
#include "mutator.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string_view>

namespace steadfast::test {

Bytes Mutator::next(const std::vector<Bytes>& corpus) {
  Bytes bytes = corpus[below(corpus.size())];
  for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) change(bytes, corpus);
  return bytes;
}

void Mutator::change(Bytes& bytes, const std::vector<Bytes>& corpus) {
  // Metadata lies at the front: half of all changes go there.
  const std::size_t reach = below(2) == 0 ? std::min<std::size_t>(bytes.size(), 256) : bytes.size();
  const std::size_t at = below(reach);
  switch (below(8)) {
    case 0:
      bytes[at] ^= static_cast<std::byte>(1u << below(8));
      break;
    case 1:
      bytes[at] = static_cast<std::byte>(below(256));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                  bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), at + 1 + below(16))));
      break;
    case 4:
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), 1 + below(16), static_cast<std::byte>(below(256)));
      break;
    case 5:
      splice(bytes, corpus[below(corpus.size())]);
      break;
    case 6:
      set_digits(bytes);
      break;
    default:
      set_integer(bytes);
      break;
  }
}

void Mutator::set_integer(Bytes& bytes) {
  static constexpr std::array<std::uint64_t, 16> kBoundaries = {0,
                                                                1,
                                                                2,
                                                                7,
                                                                8,
                                                                31,
                                                                32,
                                                                33,
                                                                0x7F,
                                                                0xFF,
                                                                0x7FFF'FFFF,
                                                                0xFFFF'FFFF,
                                                                0x1'0000'0000,
                                                                0x7FFF'FFFF'FFFF'FFFF,
                                                                0x8000'0000'0000'0000,
                                                                0xFFFF'FFFF'FFFF'FFFF};
  const std::size_t width = std::size_t{1} << below(4);
  if (bytes.size() < width) return;
  const std::size_t at = below(bytes.size() - width + 1);
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, width);
  switch (below(4)) {
    case 0:
      value += below(64);
      break;
    case 1:
      value -= below(64);
      break;
    case 2:
      value = std::uint64_t{1} << below(64);
      break;
    default:
      value = kBoundaries[below(kBoundaries.size())];
      break;
  }
  std::memcpy(bytes.data() + at, &value, width);
}

// A number written in text (JSON) becomes a boundary value of the same or another length.
void Mutator::set_digits(Bytes& bytes) {
  static constexpr std::array<std::string_view, 12> kNumbers = {"0",
                                                                "-1",
                                                                "1",
                                                                "9223372036854775807",
                                                                "9223372036854775808",
                                                                "18446744073709551615",
                                                                "18446744073709551616",
                                                                "4294967296",
                                                                "1e9",
                                                                "0.5",
                                                                "null",
                                                                "[]"};
  const auto is_digit = [](std::byte byte) { return std::isdigit(static_cast<unsigned char>(byte)) != 0; };
  const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size()));
  const auto first = std::find_if(from, bytes.end(), is_digit);
  if (first == bytes.end()) return;
  const auto place = bytes.erase(first, std::find_if_not(first, bytes.end(), is_digit));
  const auto number = std::as_bytes(std::span(kNumbers[below(kNumbers.size())]));
  bytes.insert(place, number.begin(), number.end());
}

void Mutator::splice(Bytes& bytes, const Bytes& other) {
  const std::size_t from = below(other.size());
  const std::size_t length = 1 + below(std::min<std::size_t>(other.size() - from, 64));
  const auto begin = other.begin() + static_cast<std::ptrdiff_t>(from);
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1)), begin,
               begin + static_cast<std::ptrdiff_t>(length));
}

}  // namespace steadfast::test
