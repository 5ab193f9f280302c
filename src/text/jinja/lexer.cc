// One pass over the normalised source: text up to the next tag, then the tag.
#include "text/jinja/lexer.h"

#include <algorithm>

#include "text/jinja/literals.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

// "\r\n" and "\r" become "\n"; one newline at the end of the template is dropped, as Jinja does.
std::string normalize(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(normalize(source)) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const std::size_t tag = find_tag();
      if (tag == std::string::npos) {
        add(TokenType::kData, text_.substr(at_));
        break;
      }
      const char kind = text_[tag + 1];
      const char sign = sign_at(tag + 2);
      const std::size_t raw_end = kind == '%' ? raw_begin(tag) : std::string::npos;
      data_before(at_, tag, sign, kind != '{');
      advance_to(tag + 2 + (sign == 0 ? 0 : 1));
      if (raw_end != std::string::npos) {
        raw_block(raw_end);
      } else if (kind == '#') {
        comment();
      } else {
        inside(kind == '%');
      }
    }
    add(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void add(TokenType type, std::string text, Value value = {}) {
    tokens_.push_back({type, line_, std::move(text), std::move(value)});
  }

  char peek(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  char sign_at(std::size_t at) const { return peek(at) == '-' || peek(at) == '+' ? text_[at] : '\0'; }
  bool starts(std::size_t at, std::string_view word) const {
    return std::string_view(text_).substr(at).starts_with(word);
  }

  void advance_to(std::size_t to) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  std::size_t find_tag() const {
    for (std::size_t at = text_.find('{', at_); at != std::string::npos; at = text_.find('{', at + 1)) {
      const char next = peek(at + 1);
      if (next == '%' || next == '{' || next == '#') return at;
    }
    return std::string::npos;
  }

  std::size_t skip_space(std::size_t at) const {
    while (at < text_.size() && is_space(code_point_at(text_, at))) at += code_point_bytes(text_, at);
    return at;
  }

  // Where the text after "{% raw %}" starts, npos if `tag` is another tag.
  std::size_t raw_begin(std::size_t tag) const {
    std::size_t at = tag + 2 + (sign_at(tag + 2) == 0 ? 0 : 1);
    at = skip_space(at);
    if (!starts(at, "raw")) return std::string::npos;
    at = skip_space(at + 3);
    if (starts(at, "-%}")) return skip_space(at + 3);
    return starts(at, "%}") ? at + 2 : std::string::npos;
  }

  // The text before a tag, stripped as the tag's sign asks.
  void data_before(std::size_t from, std::size_t tag, char sign, bool is_block) {
    std::string_view data = std::string_view(text_).substr(from, tag - from);
    if (sign == '-') {
      data = strip(data, std::nullopt, Sides::kRight);
    } else if (sign != '+' && is_block) {
      const std::size_t newline = data.rfind('\n');
      const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
      const bool starts_line = line_start > 0 || from == 0 || text_[from - 1] == '\n';
      if (starts_line && strip(data.substr(line_start), std::nullopt, Sides::kLeft).empty())
        data = data.substr(0, line_start);
    }
    if (!data.empty()) add(TokenType::kData, std::string(data));
  }

  // The end of a tag at `at` ("%}", "-%}", "+%}" and what they strip after themselves), npos if there is none.
  std::size_t tag_end(std::size_t at, std::string_view mark, bool takes_plus) const {
    if (text_[at] == '-' && starts(at + 1, mark)) return skip_space(at + 1 + mark.size());
    if (takes_plus && text_[at] == '+' && starts(at + 1, mark)) return at + 1 + mark.size();
    if (!starts(at, mark)) return std::string::npos;
    at += mark.size();
    return takes_plus && peek(at) == '\n' ? at + 1 : at;  // trim_blocks
  }

  void comment() {
    for (std::size_t at = at_; at < text_.size(); ++at) {
      if (const std::size_t end = tag_end(at, "#}", true); end != std::string::npos) return advance_to(end);
    }
    fail_at(line_, "a comment is never closed: '#}}' is missing");
  }

  void raw_block(std::size_t from) {
    advance_to(from);
    for (std::size_t tag = text_.find("{%", at_); tag != std::string::npos; tag = text_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      std::size_t at = skip_space(tag + 2 + (sign == 0 ? 0 : 1));
      if (!starts(at, "endraw")) continue;
      at = skip_space(at + 6);
      const std::size_t end = at < text_.size() ? tag_end(at, "%}", true) : std::string::npos;
      if (end == std::string::npos) continue;
      data_before(from, tag, sign, true);
      return advance_to(end);
    }
    fail_at(line_, "a raw block is never closed: '{{% endraw %}}' is missing");
  }

  // The tokens of a statement or a print, up to its end.
  void inside(bool is_block) {
    add(is_block ? TokenType::kBlockBegin : TokenType::kPrintBegin, "");
    std::string open;  // the brackets that are open
    while (at_ < text_.size()) {
      if (open.empty()) {
        const std::size_t end = tag_end(at_, is_block ? "%}" : "}}", is_block);
        if (end != std::string::npos) {
          add(is_block ? TokenType::kBlockEnd : TokenType::kPrintEnd, "");
          return advance_to(end);
        }
      }
      const std::int32_t c = code_point_at(text_, at_);
      if (is_space(c)) {
        advance_to(skip_space(at_));
      } else if (c == '"' || c == '\'') {
        string(static_cast<char>(c));
      } else if (c >= '0' && c <= '9') {
        number();
      } else if (is_word(c)) {
        name();
      } else {
        symbol(open);
      }
    }
  }

  void string(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail_at(line_, "a string is never closed: {} is missing", quote);
    const std::string_view body = std::string_view(text_).substr(at_ + 1, end - at_ - 1);
    add(TokenType::kLiteral, "", Value::constant(unescape(body, line_)));
    advance_to(end + 1);
  }

  void number() {
    const bool is_after_dot = at_ > 0 && text_[at_ - 1] == '.';
    const NumberLiteral number = read_number(std::string_view(text_).substr(at_), is_after_dot, line_);
    add(TokenType::kLiteral, "", number.value);
    advance_to(at_ + number.bytes);
  }

  void name() {
    std::size_t end = at_;
    while (end < text_.size() && is_word(code_point_at(text_, end))) end += code_point_bytes(text_, end);
    add(TokenType::kName, text_.substr(at_, end - at_));
    advance_to(end);
  }

  void symbol(std::string& open) {
    static constexpr std::string_view kSymbols[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                    "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                    ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const std::string_view symbol : kSymbols) {
      if (!starts(at_, symbol)) continue;
      match_brackets(symbol[0], open);
      add(TokenType::kSymbol, std::string(symbol));
      return advance_to(at_ + symbol.size());
    }
    fail_at(line_, "unexpected character '{}'", text_.substr(at_, code_point_bytes(text_, at_)));
  }

  void match_brackets(char c, std::string& open) const {
    constexpr std::string_view kOpening = "([{";
    constexpr std::string_view kClosing = ")]}";
    if (kOpening.find(c) != kOpening.npos) open += c;
    const std::size_t closing = kClosing.find(c);
    if (closing == kClosing.npos) return;
    if (open.empty()) fail_at(line_, "unexpected '{}'", c);
    const char expected = kClosing[kOpening.find(open.back())];
    if (expected != c) fail_at(line_, "unexpected '{}', expected '{}'", c, expected);
    open.pop_back();
  }

  const std::string text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::kData:
      return "text";
    case TokenType::kBlockBegin:
      return "{%";
    case TokenType::kBlockEnd:
      return "%}";
    case TokenType::kPrintBegin:
      return "{{";
    case TokenType::kPrintEnd:
      return "}}";
    case TokenType::kLiteral:
      return "a literal";
    case TokenType::kEnd:
      return "the end of the template";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace steadfast::jinja
