// Python's str on UTF-8: code points, white space, case, stripping, splitting into lines. A byte that is not part of
// valid UTF-8 counts as one code point of its own and is kept as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace steadfast::jinja {

enum class Sides { kBoth, kLeft, kRight };

// The bytes of the code point that starts at text[at], at < text.size().
std::size_t code_point_bytes(std::string_view text, std::size_t at);
// Its number; U+FFFD for an invalid byte.
std::int32_t code_point_at(std::string_view text, std::size_t at);
void append_code_point(std::string& text, std::int32_t code_point);
std::size_t length(std::string_view text);
// The text cut into its code points.
std::vector<std::string_view> characters(std::string_view text);
// The byte where code point `index` starts, text.size() past the end.
std::size_t byte_of(std::string_view text, std::size_t index);

bool is_space(std::int32_t code_point);
// Without white space at the sides, or without the code points of `chars`.
std::string_view strip(std::string_view text, std::optional<std::string_view> chars, Sides sides);
// Lines without their ends, as str.splitlines; with them if `keep_ends`.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
// Where `wanted` is first at or after `from`, or last; npos if it is not there. Linear in the sizes, whatever they
// hold.
std::size_t find_first(std::string_view text, std::string_view wanted, std::size_t from = 0);
std::size_t find_last(std::string_view text, std::string_view wanted);
std::string replace(std::string_view text, std::string_view from, std::string_view to, std::int64_t count);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);
std::string swap_case(std::string_view text);

enum class TextClass { kAlphabetic, kAlphanumeric, kDecimal, kDigit, kNumeric, kSpace, kLower, kUpper, kTitle, kAscii };
bool is_class(std::string_view text, TextClass wanted);
// May be part of a name (\w and Python's identifiers beyond ASCII).
bool is_word(std::int32_t code_point);
bool is_printable(std::int32_t code_point);

}  // namespace steadfast::jinja
