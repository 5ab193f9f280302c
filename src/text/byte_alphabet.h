// The alphabet of byte-level BPE: every byte has one printable character. Source: model-spec 6.4 (GPT-2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace steadfast {

// The bytes that a token's text stands for; nothing if a character is outside the alphabet (or malformed).
std::optional<std::string> alphabet_to_bytes(std::string_view token_text);

// The text of any bytes, for example " the" gives "Ġthe".
std::string bytes_to_alphabet(std::string_view bytes);

}  // namespace steadfast
