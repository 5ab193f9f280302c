// PCRE2's \s under UCP contains U+180E, which is no White_Space: \s and \S become explicit properties. A JIT match that
// runs out of its stack is repeated by the interpreter, whose memory is on the heap and limited.
#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>

#include "base/check.h"

namespace steadfast {
namespace {

constexpr std::size_t kMaxPatternBytes = 16384;
constexpr std::uint32_t kMatchLimit = 200'000'000;  // backtracks of one match: a second or so
constexpr std::uint32_t kHeapLimitKib = 512 * 1024;

struct ContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// Only read after it is made, so all threads share it.
pcre2_match_context* limits() {
  static const std::unique_ptr<pcre2_match_context, ContextDeleter> context = [] {
    std::unique_ptr<pcre2_match_context, ContextDeleter> made(pcre2_match_context_create(nullptr));
    CHECK(made != nullptr, "no memory for a match context");
    pcre2_set_match_limit(made.get(), kMatchLimit);
    pcre2_set_depth_limit(made.get(), kMatchLimit);
    pcre2_set_heap_limit(made.get(), kHeapLimitKib);
    return made;
  }();
  return context.get();
}

// Oniguruma's pattern in PCRE2's terms.
Result<std::string> translate(std::string_view pattern) {
  std::string result;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (std::string_view("hHRXKQECgkNyYO").find(escaped) != std::string_view::npos) {
        return Status::error("the pattern uses \\{}, which this program does not read as the file's author meant it",
                             escaped);
      }
      if (escaped == 's') {
        result += "\\p{White_Space}";
      } else if (escaped == 'S') {
        result += "\\P{White_Space}";
      } else {
        result += {'\\', escaped};
      }
      continue;
    }
    if (in_class && pattern.substr(i, 2) == "&&") {
      return Status::error("the pattern uses && inside a class, which this program does not support");
    }
    if (in_class && c == '[' && pattern.substr(i, 2) != "[:") {
      return Status::error("the pattern uses a class inside a class, which this program does not support");
    }
    if (in_class && c == '[') {  // a POSIX class, up to its "]"
      const std::size_t end = pattern.find(":]", i + 2);
      if (end == std::string_view::npos) return Status::error("the pattern has a [: without its :]");
      result.append(pattern.substr(i, end + 2 - i));
      i = end + 1;
      continue;
    }
    if (pattern.substr(i, 3) == "(?m") {
      return Status::error("the pattern uses (?m, which its author's engine and this program's read differently");
    }
    result.push_back(c);
    if (c == '[') {
      in_class = true;
      for (const char first : {'^', ']'}) {  // a "]" that comes first is a character
        if (i + 1 < pattern.size() && pattern[i + 1] == first) result.push_back(pattern[++i]);
      }
    }
    if (c == ']') in_class = false;
  }
  return result;
}

}  // namespace

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.empty()) return Status::error("the pattern is empty");
  if (pattern.size() > kMaxPatternBytes) {
    return Status::error("the pattern has {} bytes; at most {} are read", pattern.size(), kMaxPatternBytes);
  }
  auto translated = translate(pattern);
  if (!translated) return translated.status();
  return compile_translated(*translated, PCRE2_MULTILINE);  // in Oniguruma ^ and $ match at every line
}

Result<Regex> Regex::literal(std::string_view text) {
  if (text.empty()) return Status::error("the pattern is empty");
  if (text.size() > kMaxPatternBytes) {
    return Status::error("the pattern has {} bytes; at most {} are read", text.size(), kMaxPatternBytes);
  }
  return compile_translated(text, PCRE2_LITERAL);
}

Result<Regex> Regex::compile_translated(std::string_view pattern, std::uint32_t options) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  if ((options & PCRE2_LITERAL) == 0) options |= PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options | PCRE2_UTF,
                                   &error, &offset, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof message);
    return Status::error("the pattern is not a valid regular expression: {} (at byte {})",
                         reinterpret_cast<const char*>(message), offset);
  }
  Regex regex;
  regex.code_ =
      std::shared_ptr<const pcre2_code>(code, [](const pcre2_code* c) { pcre2_code_free(const_cast<pcre2_code*>(c)); });
  regex.jit_ = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  return regex;
}

Regex::Matcher::Matcher(const Regex& regex) : regex_(&regex) {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  CHECK(data != nullptr, "no memory for match data");
  data_ = std::shared_ptr<pcre2_match_data>(data, pcre2_match_data_free);
}

std::optional<Match> Regex::Matcher::find(std::string_view text, std::size_t from) const {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int count = PCRE2_ERROR_JIT_STACKLIMIT;
  if (regex_->jit_) {
    count = pcre2_jit_match(regex_->code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, data_.get(), limits());
  }
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) {
    count = pcre2_match(regex_->code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data_.get(),
                        limits());
  }
  if (count < 0) return std::nullopt;
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data_.get());
  if (bounds[1] < bounds[0]) return std::nullopt;  // \K in a look-ahead
  return Match{bounds[0], bounds[1]};
}

}  // namespace steadfast
