// Methods of strings that give new strings or facts about them: find_text_method.
#include <algorithm>
#include <iterator>

#include "text/jinja/builtins.h"
#include "text/jinja/format.h"
#include "text/jinja/printing.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

Value result(Call& call, std::string text) { return call.vm.heap().text_like(call.self, std::move(text)); }

const std::string& text_argument(const Call& call, const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_text()) fail("{}() needs a string, not '{}'", call.name, value.type_name());
  return value.as_text();
}

template <std::string (*change)(std::string_view)>
Value change_text(Call& call) {
  static_cast<void>(call.bind({}));
  return result(call, change(call.self.as_text()));
}

template <Sides sides>
Value strip_text(Call& call) {
  const auto arguments = call.bind({"chars"});
  std::optional<std::string_view> chars;
  if (arguments[0] != nullptr && !arguments[0]->is_none()) chars = text_argument(call, *arguments[0]);
  return result(call, std::string(strip(call.self.as_text(), chars, sides)));
}

template <TextClass wanted>
Value has_class(Call& call) {
  static_cast<void>(call.bind({}));
  return Value::boolean(is_class(call.self.as_text(), wanted));
}

Value replace_text(Call& call) {
  const auto arguments = call.bind({"old", "new", "count"}, 2);
  const std::string& text = call.self.as_text();
  const std::string& from = text_argument(call, *arguments[0]);
  const std::string& to = text_argument(call, *arguments[1]);
  const std::int64_t count = arguments[2] == nullptr ? -1 : to_index(*arguments[2], "replace()'s count");
  if (to.size() > from.size()) {
    std::size_t found = from.empty() ? text.size() + 1 : 0;
    if (!from.empty()) {
      for (std::size_t at = find_first(text, from); at != text.npos; at = find_first(text, from, at + from.size()))
        ++found;
    }
    if (count >= 0) found = std::min(found, static_cast<std::size_t>(count));
    if (found != 0 && to.size() > kMaxTextBytes / found) Heap::check_text_size(kMaxTextBytes + 1);
  }
  call.vm.heap().spend_text(text.size());
  return result(call, replace(text, from, to, count));
}

enum class Padding { kLeft, kRight, kCenter };

template <Padding padding>
Value pad_text(Call& call) {
  const auto arguments = call.bind({"width", "fillchar"}, 1);
  const std::string fill = arguments[1] == nullptr ? " " : text_argument(call, *arguments[1]);
  if (length(fill) != 1) fail("the fill character must be exactly one character long");
  const std::int64_t width = to_index(*arguments[0], "the width");
  const std::int64_t missing = width - static_cast<std::int64_t>(length(call.self.as_text()));
  if (missing <= 0) return call.self;
  Heap::check_text_size(missing > static_cast<std::int64_t>(kMaxTextBytes / 4) ? kMaxTextBytes + 1 : 0);
  const std::int64_t centered = missing / 2 + (missing & width & 1);  // as CPython cuts it
  const std::int64_t left = padding == Padding::kLeft ? missing : (padding == Padding::kRight ? 0 : centered);
  std::string out;
  for (std::int64_t i = 0; i < left; ++i) out += fill;
  out += call.self.as_text();
  for (std::int64_t i = left; i < missing; ++i) out += fill;
  return result(call, std::move(out));
}

Value zero_fill(Call& call) {
  const auto arguments = call.bind({"width"}, 1);
  const std::string& text = call.self.as_text();
  const std::int64_t missing = to_index(*arguments[0], "the width") - static_cast<std::int64_t>(length(text));
  if (missing <= 0) return call.self;
  Heap::check_text_size(missing > static_cast<std::int64_t>(kMaxTextBytes) ? kMaxTextBytes + 1 : 0);
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  return result(call, text.substr(0, sign) + std::string(static_cast<std::size_t>(missing), '0') + text.substr(sign));
}

Value join_text(Call& call) {
  const auto arguments = call.bind({"iterable"}, 1);
  const std::string& separator = call.self.as_text();
  std::string out;
  std::size_t position = 0;
  for (const Value& item : items_of(call.vm.heap(), *arguments[0])) {
    if (!item.is_text()) fail("sequence item {}: expected str instance, {} found", position, item.type_name());
    if (position++ != 0) out += separator;
    out += call.self.is_safe_text() && !item.is_safe_text() ? escape_html(item.as_text()) : item.as_text();
    Heap::check_text_size(out.size());
  }
  return result(call, std::move(out));
}

Value format_text(Call& call) { return brace_format(call.vm, call.self, call.arguments); }

Value remove_prefix(Call& call) {
  const auto arguments = call.bind({"prefix"}, 1);
  std::string_view text = call.self.as_text();
  const std::string& prefix = text_argument(call, *arguments[0]);
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return result(call, std::string(text));
}

Value remove_suffix(Call& call) {
  const auto arguments = call.bind({"suffix"}, 1);
  std::string_view text = call.self.as_text();
  const std::string& suffix = text_argument(call, *arguments[0]);
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return result(call, std::string(text));
}

Value expand_tabs(Call& call) {
  const auto arguments = call.bind({"tabsize"});
  const std::int64_t size = arguments[0] == nullptr ? 8 : to_index(*arguments[0], "the tab size");
  if (size > 10'000) fail("the tab size is more than 10000");
  std::string out;
  std::int64_t column = 0;
  for (const std::string_view c : characters(call.self.as_text())) {
    if (c == "\t") {
      const std::int64_t spaces = size > 0 ? size - column % size : 0;
      out.append(static_cast<std::size_t>(spaces), ' ');
      column += spaces;
    } else {
      out += c;
      column = c == "\n" || c == "\r" ? 0 : column + 1;
    }
    Heap::check_text_size(out.size());
  }
  return result(call, std::move(out));
}

constexpr NamedBuiltin kMethods[] = {
    {"capitalize", change_text<capitalize>},
    {"casefold", change_text<lower>},
    {"center", pad_text<Padding::kCenter>},
    {"expandtabs", expand_tabs},
    {"format", format_text},
    {"isalnum", has_class<TextClass::kAlphanumeric>},
    {"isalpha", has_class<TextClass::kAlphabetic>},
    {"isascii", has_class<TextClass::kAscii>},
    {"isdecimal", has_class<TextClass::kDecimal>},
    {"isdigit", has_class<TextClass::kDigit>},
    {"islower", has_class<TextClass::kLower>},
    {"isnumeric", has_class<TextClass::kNumeric>},
    {"isspace", has_class<TextClass::kSpace>},
    {"istitle", has_class<TextClass::kTitle>},
    {"isupper", has_class<TextClass::kUpper>},
    {"join", join_text},
    {"ljust", pad_text<Padding::kRight>},
    {"lower", change_text<lower>},
    {"lstrip", strip_text<Sides::kLeft>},
    {"removeprefix", remove_prefix},
    {"removesuffix", remove_suffix},
    {"replace", replace_text},
    {"rjust", pad_text<Padding::kLeft>},
    {"rstrip", strip_text<Sides::kRight>},
    {"strip", strip_text<Sides::kBoth>},
    {"swapcase", change_text<swap_case>},
    {"title", change_text<title>},
    {"upper", change_text<upper>},
    {"zfill", zero_fill},
};

}  // namespace

Builtin find_text_method(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kMethods), std::end(kMethods), [&](const auto& m) { return m.name == name; });
  return found == std::end(kMethods) ? nullptr : found->builtin;
}

}  // namespace steadfast::jinja
