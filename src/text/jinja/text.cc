// Code points and categories come from utf8proc; what its simple mappings lack is in special_case.h.
#include "text/jinja/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>

#include "text/jinja/special_case.h"

namespace steadfast::jinja {
namespace {

constexpr std::int32_t kInvalid = 0xFFFD;
constexpr std::int32_t kSigma = 0x3A3;
constexpr std::int32_t kFinalSigma = 0x3C2;
constexpr std::int32_t kDottedI = 0x130;

// The number and the bytes of the code point at `at`.
std::pair<std::int32_t, std::size_t> decode(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  std::int32_t code_point = -1;
  const auto read = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                     static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
  if (read <= 0 || code_point < 0) return {kInvalid, 1};
  return {code_point, static_cast<std::size_t>(read)};
}

bool is_cased(std::int32_t c) {
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT ||
         utf8proc_islower(c) != 0 || utf8proc_isupper(c) != 0;
}

bool is_case_ignorable(std::int32_t c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  constexpr std::int32_t kPunctuation[] = {'\'', '.', ':', 0xB7, 0x2018, 0x2019, 0x2024, 0x2027};
  return std::find(std::begin(kPunctuation), std::end(kPunctuation), c) != std::end(kPunctuation);
}

// A capital sigma at `at` ends its word: a letter before it, none after.
bool is_final_sigma(std::string_view text, std::size_t at, std::size_t bytes) {
  bool has_before = false;
  std::size_t pos = at;
  while (pos > 0 && !has_before) {
    --pos;
    while (pos > 0 && (static_cast<unsigned char>(text[pos]) & 0xC0) == 0x80) --pos;
    const std::int32_t c = decode(text, pos).first;
    if (is_case_ignorable(c)) continue;
    has_before = is_cased(c);
    break;
  }
  if (!has_before) return false;
  for (pos = at + bytes; pos < text.size();) {
    const auto [c, size] = decode(text, pos);
    if (!is_case_ignorable(c)) return !is_cased(c);
    pos += size;
  }
  return true;
}

enum class Case { kUpper, kLower, kTitle };

// Appends the code point at `at` in the case wanted.
void append_cased(std::string& out, std::string_view text, std::size_t at, Case wanted) {
  const auto [c, bytes] = decode(text, at);
  if (c < 0x80) {
    out += static_cast<char>(wanted == Case::kLower ? std::tolower(c) : std::toupper(c));
    return;
  }
  if (c == kInvalid && bytes == 1) {
    out += text[at];
    return;
  }
  if (wanted == Case::kLower) {
    if (c == kSigma && is_final_sigma(text, at, bytes)) return append_code_point(out, kFinalSigma);
    if (c == kDottedI) {
      out += "i\u0307";
      return;
    }
    return append_code_point(out, utf8proc_tolower(c));
  }
  const auto* found = std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), c,
                                       [](const SpecialCase& entry, std::int32_t key) { return entry.letter < key; });
  if (found != std::end(kSpecialCases) && found->letter == c) {
    for (const std::int32_t part : wanted == Case::kUpper ? found->upper : found->title) {
      if (part != 0) append_code_point(out, part);
    }
    return;
  }
  append_code_point(out, wanted == Case::kUpper ? utf8proc_toupper(c) : utf8proc_totitle(c));
}

std::string with_case(std::string_view text, Case wanted) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); at += code_point_bytes(text, at)) append_cased(out, text, at, wanted);
  return out;
}

bool is_letter(utf8proc_category_t category) {
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

// No-category characters that are digits to Python: superscripts, subscripts, circled digits.
bool is_other_digit(std::int32_t c) {
  return c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C) ||
         (c >= 0x2488 && c <= 0x2490) || c == 0x24EA || (c >= 0x2776 && c <= 0x277E);
}

bool has_class(std::int32_t c, TextClass wanted) {
  const auto category = utf8proc_category(c);
  const bool is_decimal = category == UTF8PROC_CATEGORY_ND;
  const bool is_numeric = is_decimal || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
  switch (wanted) {
    case TextClass::kAlphabetic:
      return is_letter(category);
    case TextClass::kAlphanumeric:
      return is_letter(category) || is_numeric;
    case TextClass::kDecimal:
      return is_decimal;
    case TextClass::kDigit:
      return is_decimal || is_other_digit(c);
    case TextClass::kNumeric:
      return is_numeric;
    case TextClass::kSpace:
      return is_space(c);
    default:
      return c < 0x80;
  }
}

// str.islower, isupper and istitle: no letter of the wrong case, and at least one of the right one.
bool has_case(std::string_view text, TextClass wanted) {
  bool found = false;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size(); at += code_point_bytes(text, at)) {
    const std::int32_t c = code_point_at(text, at);
    const bool is_title = utf8proc_category(c) == UTF8PROC_CATEGORY_LT;
    const bool is_low = utf8proc_islower(c) != 0;
    const bool is_up = utf8proc_isupper(c) != 0 || is_title;
    if (wanted == TextClass::kLower && is_up) return false;
    if (wanted == TextClass::kUpper && (is_low || is_title)) return false;
    if (wanted == TextClass::kTitle && ((is_up && in_word) || (is_low && !in_word))) return false;
    in_word = is_low || is_up;
    found = found || in_word;
  }
  return found;
}

bool is_line_end(std::int32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::size_t code_point_bytes(std::string_view text, std::size_t at) { return decode(text, at).second; }
std::int32_t code_point_at(std::string_view text, std::size_t at) { return decode(text, at).first; }

void append_code_point(std::string& text, std::int32_t code_point) {
  utf8proc_uint8_t buffer[4];
  const auto size = utf8proc_encode_char(code_point, buffer);
  text.append(reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(size));
}

std::size_t length(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += code_point_bytes(text, at)) ++count;
  return count;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = code_point_bytes(text, at);
    result.push_back(text.substr(at, bytes));
    at += bytes;
  }
  return result;
}

std::size_t byte_of(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += code_point_bytes(text, at);
  return at;
}

bool is_space(std::int32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view strip(std::string_view text, std::optional<std::string_view> chars, Sides sides) {
  std::vector<std::string_view> set = chars ? characters(*chars) : std::vector<std::string_view>();
  std::sort(set.begin(), set.end());
  const auto is_stripped = [&](std::string_view c) {
    return chars ? std::binary_search(set.begin(), set.end(), c) : is_space(code_point_at(c, 0));
  };
  if (sides != Sides::kRight) {
    while (!text.empty()) {
      const std::size_t bytes = code_point_bytes(text, 0);
      if (!is_stripped(text.substr(0, bytes))) break;
      text.remove_prefix(bytes);
    }
  }
  while (sides != Sides::kLeft && !text.empty()) {
    std::size_t start = text.size() - 1;
    for (int back = 0; back < 3 && start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80; ++back)
      --start;
    if (code_point_bytes(text, start) != text.size() - start) start = text.size() - 1;  // a stray byte
    if (!is_stripped(text.substr(start))) break;
    text = text.substr(0, start);
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [c, bytes] = decode(text, at);
    if (!is_line_end(c)) {
      at += bytes;
      continue;
    }
    const std::size_t end = at + (text.substr(at).starts_with("\r\n") ? 2 : bytes);
    lines.push_back(text.substr(start, (keep_ends ? end : at) - start));
    start = at = end;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::size_t find_first(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t find_last(std::string_view text, std::string_view wanted) {
  const std::string backward(text.rbegin(), text.rend());
  const std::size_t found = find_first(backward, std::string(wanted.rbegin(), wanted.rend()));
  return found == std::string_view::npos ? found : text.size() - found - wanted.size();
}

std::string replace(std::string_view text, std::string_view from, std::string_view to, std::int64_t count) {
  std::string out;
  std::size_t at = 0;
  for (; count != 0; --count) {
    if (from.empty()) {  // between all code points and at both ends
      out += to;
      if (at >= text.size()) return out;
      const std::size_t bytes = code_point_bytes(text, at);
      out += text.substr(at, bytes);
      at += bytes;
      continue;
    }
    const std::size_t found = find_first(text, from, at);
    if (found == std::string_view::npos) break;
    out += text.substr(at, found - at);
    out += to;
    at = found + from.size();
  }
  return out += text.substr(at);
}

std::string upper(std::string_view text) { return with_case(text, Case::kUpper); }
std::string lower(std::string_view text) { return with_case(text, Case::kLower); }

std::string capitalize(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += code_point_bytes(text, at)) {
    append_cased(out, text, at, at == 0 ? Case::kTitle : Case::kLower);
  }
  return out;
}

std::string title(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size(); at += code_point_bytes(text, at)) {
    append_cased(out, text, at, in_word ? Case::kLower : Case::kTitle);
    in_word = is_cased(code_point_at(text, at));
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += code_point_bytes(text, at)) {
    const std::int32_t c = code_point_at(text, at);
    append_cased(out, text, at, utf8proc_isupper(c) != 0 ? Case::kLower : Case::kUpper);
  }
  return out;
}

bool is_class(std::string_view text, TextClass wanted) {
  if (wanted == TextClass::kLower || wanted == TextClass::kUpper || wanted == TextClass::kTitle) {
    return has_case(text, wanted);
  }
  if (text.empty()) return wanted == TextClass::kAscii;
  for (std::size_t at = 0; at < text.size(); at += code_point_bytes(text, at)) {
    if (!has_class(code_point_at(text, at), wanted)) return false;
  }
  return true;
}

bool is_word(std::int32_t c) {
  const auto category = utf8proc_category(c);
  return c == '_' || is_letter(category) || category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_PC;
}

bool is_printable(std::int32_t c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

}  // namespace steadfast::jinja
