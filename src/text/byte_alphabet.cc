// Bytes 33-126, 161-172 and 174-255 are their own characters; the other 68, in order, are U+0100 to U+0143.
#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace steadfast {
namespace {

constexpr int kCharacters = 256 + 68;

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int, kCharacters> byte{};  // -1: no byte has this character

  constexpr Alphabet() {
    byte.fill(-1);
    char32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool own = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      character[b] = own ? static_cast<char32_t>(b) : next++;
      byte[character[b]] = b;
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

std::optional<std::string> alphabet_to_bytes(std::string_view token_text) {
  std::string bytes;
  bytes.reserve(token_text.size());
  for (std::size_t at = 0; at < token_text.size();) {
    const Utf8Step step = utf8_step(token_text, at);
    if (!step.valid || step.code >= kCharacters || kAlphabet.byte[step.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.byte[step.code]));
    at += step.bytes;
  }
  return bytes;
}

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_utf8(text, kAlphabet.character[static_cast<unsigned char>(byte)]);
  return text;
}

}  // namespace steadfast
