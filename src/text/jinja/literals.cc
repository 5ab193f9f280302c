// Python's string escapes and number literals.
#include "text/jinja/literals.h"

#include <cctype>
#include <charconv>

#include "text/jinja/numbers.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

// Reads exactly `digits` hexadecimal digits at body[at].
std::int32_t read_hex(std::string_view body, std::size_t at, std::size_t digits, int line) {
  std::uint32_t value = 0;
  const std::string_view part = body.substr(std::min(at, body.size()), digits);
  const auto read = std::from_chars(part.data(), part.data() + part.size(), value, 16);
  if (part.size() != digits || read.ptr != part.data() + part.size())
    fail_at(line, "a string has a truncated \\x, \\u or \\U escape");
  if (value > 0x10FFFF) fail_at(line, "a string has an escape past U+10FFFF");
  return static_cast<std::int32_t>(value);
}

// Appends the escape whose letter is at body[at]; returns where it ends.
std::size_t append_escape(std::string& out, std::string_view body, std::size_t at, int line) {
  constexpr std::string_view kLetters = "abfnrtv\\'\"";
  constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const char letter = body[at];
  if (const std::size_t found = kLetters.find(letter); found != kLetters.npos) {
    out += kMeanings[found];
    return at + 1;
  }
  if (letter == '\n') return at + 1;  // an escaped line end joins the lines
  if (letter == 'x' || letter == 'u' || letter == 'U') {
    const std::size_t digits = letter == 'x' ? 2 : (letter == 'u' ? 4 : 8);
    const std::int32_t code_point = read_hex(body, at + 1, digits, line);
    if (code_point >= 0xD800 && code_point <= 0xDFFF)
      fail_at(line, "a string has half of a surrogate pair as an escape");
    append_code_point(out, code_point);
    return at + 1 + digits;
  }
  if (letter == 'N') fail_at(line, "escapes by character name (\\N) are not supported in strings");
  if (letter >= '0' && letter <= '7') {
    std::int32_t value = 0;
    std::size_t end = at;
    for (; end < body.size() && end < at + 3 && body[end] >= '0' && body[end] <= '7'; ++end)
      value = value * 8 + (body[end] - '0');
    append_code_point(out, value);
    return end;
  }
  out += '\\';
  return at;  // an unknown escape stays as it is
}

// The end of digits with single underscores between them that starts at `at`; `at` itself if there is none.
template <typename IsDigit>
std::size_t digits_end(std::string_view text, std::size_t at, IsDigit is_digit) {
  std::size_t end = at;
  while (end < text.size()) {
    if (is_digit(text[end])) {
      ++end;
    } else if (text[end] == '_' && end > at && end + 1 < text.size() && is_digit(text[end + 1])) {
      end += 2;
    } else {
      break;
    }
  }
  return end;
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

// Where the float at the start of `text` ends, 0 if there is none.
std::size_t float_end(std::string_view text) {
  std::size_t end = digits_end(text, 0, is_decimal);
  bool is_float = false;
  if (end + 1 < text.size() && text[end] == '.' && is_decimal(text[end + 1])) {
    end = digits_end(text, end + 1, is_decimal);
    is_float = true;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    std::size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    const std::size_t exponent_end = digits_end(text, exponent, is_decimal);
    if (exponent_end > exponent) return exponent_end;
  }
  return is_float ? end : 0;
}

std::size_t integer_end(std::string_view text) {
  const char kind = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const auto based = [&](auto is_digit) {
    const std::size_t first = text.size() > 2 && text[2] == '_' ? 3 : 2;
    const std::size_t end = digits_end(text, first, is_digit);
    return end > first ? end : std::size_t{1};
  };
  if (kind == 'x') return based([](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; });
  if (kind == 'o') return based([](char c) { return c >= '0' && c <= '7'; });
  if (kind == 'b') return based([](char c) { return c == '0' || c == '1'; });
  if (text[0] == '0') return digits_end(text, 0, [](char c) { return c == '0'; });
  return digits_end(text, 0, is_decimal);
}

}  // namespace

std::string unescape(std::string_view body, int line) {
  std::string out;
  out.reserve(body.size());
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] == '\\' && at + 1 < body.size()) {
      at = append_escape(out, body, at + 1, line);
    } else {
      out += body[at++];
    }
  }
  return out;
}

NumberLiteral read_number(std::string_view text, bool is_after_dot, int line) {
  if (const std::size_t end = is_after_dot ? 0 : float_end(text); end != 0) {
    return {Value::real(parse_float(text.substr(0, end)).value_or(0.0)), end};
  }
  const std::size_t end = integer_end(text);
  const std::optional<Int> value = parse_int(text.substr(0, end), 0);
  if (!value) fail_at(line, "'{}' is not a number", text.substr(0, end));
  return {Value::integer(*value), end};
}

}  // namespace steadfast::jinja
