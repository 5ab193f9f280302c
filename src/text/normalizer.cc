// NFC (UAX #15) with utf8proc's tables. The canonical ordering is our own stable sort: utf8proc's is quadratic in a run
// of combining marks, and a request may be one long run of them.
#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "text/utf8.h"

namespace steadfast {
namespace {

constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
constexpr unsigned char kLeadOfU0300 = 0xCC;  // characters below U+0300 are in NFC and never join the one before them

utf8proc_propval_t combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

void decompose(std::string_view text, std::vector<utf8proc_int32_t>& codes) {
  utf8proc_int32_t parts[16];
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(step.code), parts, std::size(parts), kOptions, nullptr);
    CHECK(count >= 0 && count <= std::ssize(parts), "decomposition of U+{:X}: {}", std::uint32_t{step.code}, count);
    codes.insert(codes.end(), parts, parts + count);
    at += step.bytes;
  }
}

void order_marks(std::vector<utf8proc_int32_t>& codes) {
  for (auto run = codes.begin(); run != codes.end();) {
    if (combining_class(*run) == 0) {
      ++run;
      continue;
    }
    const auto end = std::find_if(run, codes.end(), [](auto code) { return combining_class(code) == 0; });
    std::stable_sort(run, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    run = end;
  }
}

void append_composed(std::string_view text, std::string& out) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size() / 2 + 4);
  decompose(text, codes);
  order_marks(codes);
  const auto count = utf8proc_normalize_utf32(codes.data(), std::ssize(codes), kOptions);
  CHECK(count >= 0, "composition failed: {}", count);
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, static_cast<char32_t>(codes[i]));
}

std::size_t first_high(std::string_view text, std::size_t from) {
  while (from < text.size() && static_cast<unsigned char>(text[from]) < kLeadOfU0300) ++from;
  return from;
}

}  // namespace

std::string_view Normalizer::apply(std::string_view text, std::string& storage) const {
  if (!nfc) return text;
  std::size_t high = first_high(text, 0);
  if (high == text.size()) return text;
  storage.clear();
  std::size_t done = 0;
  while (high < text.size()) {
    std::size_t begin = high;  // a mark may join the character before it
    while (begin > done && (static_cast<unsigned char>(text[--begin]) & 0xC0) == 0x80) {
    }
    std::size_t end = high;
    while (end < text.size() && static_cast<unsigned char>(text[end]) >= kLeadOfU0300)
      end += utf8_step(text, end).bytes;
    storage.append(text.substr(done, begin - done));
    append_composed(text.substr(begin, end - begin), storage);
    done = end;
    high = first_high(text, end);
  }
  storage.append(text.substr(done));
  return storage;
}

}  // namespace steadfast
