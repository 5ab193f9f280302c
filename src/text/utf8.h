// UTF-8 as Unicode chapter 3 defines it (table 3-7): one step over a text, checks, repair, appending.
// A malformed sequence is cut in maximal subparts (Unicode 3.9, U+FFFD substitution), each of which becomes one U+FFFD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace steadfast {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// One character, or one maximal malformed subpart (code is then U+FFFD).
struct Utf8Step {
  char32_t code = kReplacementCharacter;
  std::size_t bytes = 0;  // at least 1
  bool valid = false;
  bool unfinished = false;  // malformed only because the text ends here
};

// at < text.size().
Utf8Step utf8_step(std::string_view text, std::size_t at);

// Bytes of `text` that are well formed from its start.
std::size_t valid_utf8_prefix(std::string_view text);

// Every maximal malformed subpart becomes U+FFFD.
std::string repaired_utf8(std::string_view text);

// code is a Unicode scalar value.
void append_utf8(std::string& text, char32_t code);

// Unicode's property White_Space.
bool is_white_space(char32_t code);

}  // namespace steadfast
