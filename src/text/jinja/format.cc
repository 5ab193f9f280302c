// Both formatters work on one Specification; widths and precisions are bounded, as templates are untrusted.
#include "text/jinja/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "text/jinja/interpreter.h"
#include "text/jinja/numbers.h"
#include "text/jinja/printing.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

constexpr std::int64_t kMaxWidth = 10'000;  // of a padded field
constexpr int kMaxPrecision = 400;          // digits after the point

struct Specification {
  std::string fill = " ";
  char align = '\0';  // < > ^ = or none
  char sign = '-';
  bool is_alternate = false;
  std::int64_t width = 0;
  char grouping = '\0';  // , or _
  std::optional<int> precision;
  char type = '\0';
};

// Reads decimal digits at text[at] and moves past them.
std::optional<std::int64_t> take_number(std::string_view text, std::size_t& at) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (at >= text.size() || text[at] < '0' || text[at] > '9' || read.ec != std::errc()) return std::nullopt;
  at = static_cast<std::size_t>(read.ptr - text.data());
  if (value > kMaxWidth) fail("a format's width or precision is more than {}", kMaxWidth);
  return value;
}

Specification parse_specification(std::string_view text) {
  constexpr std::string_view kAligns = "<>^=";
  Specification spec;
  std::size_t at = 0;
  const auto peek = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  const std::size_t first = text.empty() ? 0 : code_point_bytes(text, 0);
  if (first != 0 && peek(first) != '\0' && kAligns.find(peek(first)) != kAligns.npos) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (peek(0) != '\0' && kAligns.find(peek(0)) != kAligns.npos) {
    spec.align = text[at++];
  }
  if (peek(at) == '+' || peek(at) == '-' || peek(at) == ' ') spec.sign = text[at++];
  if (peek(at) == '#') {
    spec.is_alternate = true;
    ++at;
  }
  if (peek(at) == '0') {
    if (spec.align == '\0') {
      spec.fill = "0";
      spec.align = '=';
    }
    ++at;
  }
  spec.width = take_number(text, at).value_or(0);
  if (peek(at) == ',' || peek(at) == '_') spec.grouping = text[at++];
  if (peek(at) == '.') {
    ++at;
    const std::optional<std::int64_t> precision = take_number(text, at);
    if (!precision) fail("format specifier misses its precision");
    spec.precision = static_cast<int>(*precision);
  }
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) fail("invalid format specifier '{}'", text);
  return spec;
}

std::string pad(std::string_view sign, std::string_view body, const Specification& spec, char default_align) {
  const char align = spec.align == '\0' ? default_align : spec.align;
  const auto size = static_cast<std::int64_t>(length(sign) + length(body));
  const std::int64_t missing = std::max<std::int64_t>(0, spec.width - size);
  const auto filling = [&](std::int64_t count) {
    std::string text;
    for (std::int64_t i = 0; i < count; ++i) text += spec.fill;
    return text;
  };
  const std::string whole = std::string(sign) + std::string(body);
  if (align == '<') return whole + filling(missing);
  if (align == '^') return filling(missing / 2) + whole + filling(missing - missing / 2);
  if (align == '=') return std::string(sign) + filling(missing) + std::string(body);
  return filling(missing) + whole;
}

// 1234567.5 to 1,234,567.5
std::string grouped(const std::string& digits, char separator) {
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string result;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i != 0 && (whole - i) % 3 == 0) result += separator;
    result += digits[i];
  }
  return result + digits.substr(whole);
}

std::string integer_digits(Int value, char type, bool with_prefix) {
  const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  __extension__ using Unsigned = unsigned __int128;
  Unsigned rest = value < 0 ? -static_cast<Unsigned>(value) : static_cast<Unsigned>(value);
  std::string digits;
  do {
    digits += (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[static_cast<unsigned>(rest % base)];
    rest /= base;
  } while (rest != 0);
  if (with_prefix && base != 10) digits += {type, '0'};
  std::reverse(digits.begin(), digits.end());
  return digits;
}

// e, f, g and % of a value that is not negative, as C and Python print them.
std::string float_digits(double value, char type, int precision, bool is_alternate) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return "inf";
  if (precision > kMaxPrecision) fail("a format's precision is more than {}", kMaxPrecision);
  char buffer[1024];
  const std::string format = fmt::format("%{}.*{}", is_alternate ? "#" : "", type);
  const int size = std::snprintf(buffer, sizeof(buffer), format.c_str(), precision, value);
  return {buffer, static_cast<std::size_t>(size)};
}

std::string_view sign_of(bool is_negative, char style) {
  if (is_negative) return "-";
  return style == '+' ? "+" : style == ' ' ? " " : "";
}

std::string format_float(double value, const Specification& spec) {
  const bool is_negative = std::signbit(value) && !std::isnan(value);
  const double size = std::fabs(value);
  const bool is_upper = spec.type == 'E' || spec.type == 'F' || spec.type == 'G';
  const char type = static_cast<char>(spec.type | 0x20);
  std::string digits;
  if (spec.type == '\0' && !spec.precision) {
    digits = repr_of(size);
  } else if (spec.type == '\0') {
    digits = float_digits(size, 'g', std::max(1, *spec.precision), spec.is_alternate);
    if (digits.find_first_of(".en") == digits.npos) digits += ".0";
  } else if (spec.type == '%') {
    digits = float_digits(size * 100, 'f', spec.precision.value_or(6), spec.is_alternate) + "%";
  } else if (type == 'e' || type == 'f' || type == 'g') {
    digits = float_digits(size, type, spec.precision.value_or(6), spec.is_alternate);
  } else {
    fail("unknown format code '{}' for a float", spec.type);
  }
  if (is_upper) digits = upper(digits);
  if (spec.grouping != '\0') digits = grouped(digits, spec.grouping);
  return pad(sign_of(is_negative, spec.sign), digits, spec, '>');
}

std::string format_integer(Int value, const Specification& spec) {
  constexpr std::string_view kTypes = "dnxXob";
  if (spec.type == 'c') fail("the format code 'c' is not supported");
  if (spec.type != '\0' && kTypes.find(spec.type) == kTypes.npos) return format_float(static_cast<double>(value), spec);
  if (spec.precision) fail("precision not allowed in integer format specifier");
  std::string digits = integer_digits(value, spec.type, spec.is_alternate);
  if (spec.grouping != '\0') digits = grouped(digits, spec.grouping);
  return pad(sign_of(value < 0, spec.sign), digits, spec, '>');
}

std::string format_text(std::string_view text, const Specification& spec) {
  if (spec.type != '\0' && spec.type != 's') fail("unknown format code '{}' for a string", spec.type);
  if (spec.align == '=' && spec.fill != "0") fail("'=' alignment not allowed in string format specifier");
  Specification used = spec;
  if (used.align == '=') used.align = '<';
  if (spec.precision) text = text.substr(0, byte_of(text, static_cast<std::size_t>(*spec.precision)));
  return pad("", text, used, '<');
}

// The state of one "..." % arguments.
class PercentFormatter {
 public:
  PercentFormatter(Heap& heap, const Value& format, const Value& arguments)
      : heap_(heap), format_(format), text_(format.as_text()), arguments_(arguments) {}

  Value run() {
    std::string out;
    while (at_ < text_.size()) {
      const std::size_t percent = std::min(text_.find('%', at_), text_.size());
      out += text_.substr(at_, percent - at_);
      at_ = percent;
      if (at_ < text_.size()) out += field();
      Heap::check_text_size(out.size());
    }
    const bool all_used = next_ >= (arguments_.is_tuple() ? arguments_.sequence()->items.size() : 1);
    if (!all_used && !is_lenient()) fail("not all arguments converted during string formatting");
    return heap_.text_like(format_, std::move(out));
  }

 private:
  // Python lets everything with subscripts but tuples and strings go unused.
  bool is_lenient() const {
    return arguments_.dict() != nullptr || arguments_.is_list() || arguments_.is_undefined() ||
           arguments_.is_object(ObjectType::kRange);
  }

  char peek() const {
    if (at_ >= text_.size()) fail("incomplete format");
    return text_[at_];
  }

  Value next_argument() {
    if (arguments_.is_tuple()) {
      if (next_ >= arguments_.sequence()->items.size()) fail("not enough arguments for format string");
      return arguments_.sequence()->items[next_++];
    }
    if (next_++ > 0) fail("not enough arguments for format string");
    return arguments_;
  }

  std::optional<std::int64_t> width() {
    if (peek() != '*') return take_number(text_, at_);
    ++at_;
    const std::int64_t value = to_index(next_argument(), "a format's width");
    if (value > kMaxWidth || value < -kMaxWidth) fail("a format's width or precision is more than {}", kMaxWidth);
    return value;
  }

  Value named_argument() {
    const std::size_t end = text_.find(')', ++at_);
    if (end == text_.npos) fail("incomplete format key");
    if (arguments_.dict() == nullptr) fail("format requires a mapping");
    const std::string_view key = text_.substr(at_, end - at_);
    const Value* found = arguments_.dict()->find(key);
    if (found == nullptr) fail("the format's arguments have no '{}'", key);
    at_ = end + 1;
    return *found;
  }

  std::string field() {
    ++at_;
    std::optional<Value> named;
    if (peek() == '(') named = named_argument();
    Specification spec;
    bool has_zero = false;
    for (; std::string_view("#0- +").find(peek()) != std::string_view::npos; ++at_) {
      if (peek() == '-') spec.align = '<';
      if (peek() == '0') has_zero = true;
      if (peek() == '#') spec.is_alternate = true;
      if (peek() == '+' || (peek() == ' ' && spec.sign != '+')) spec.sign = peek();
    }
    spec.width = width().value_or(0);
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (peek() == '.') {
      ++at_;
      spec.precision = static_cast<int>(std::max<std::int64_t>(0, width().value_or(0)));
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    const char type = text_[at_++];
    if (type == '%') return "%";
    return convert(named ? *named : next_argument(), type, spec, has_zero);
  }

  std::string convert(const Value& value, char type, Specification spec, bool has_zero) const {
    spec.type = type;
    if (type == 's' || type == 'r' || type == 'a') {
      spec.type = 's';
      if (spec.align == '\0') spec.align = '>';
      heap_.spend_walk(value);
      const std::string text = type == 's' ? to_text(value) : repr(value);
      return format_text(format_.is_safe_text() && !value.is_safe_text() ? escape_html(text) : text, spec);
    }
    if (type == 'c') fail("the format code 'c' is not supported");
    if (value.is_undefined()) fail_undefined(value);
    if (!value.is_number()) fail("%{} format: a real number is required, not {}", type, value.type_name());
    if (has_zero && spec.align != '<') {
      spec.fill = "0";
      spec.align = '=';
    }
    if (type == 'd' || type == 'i' || type == 'u') return integer(value, 'd', spec);
    if (type == 'x' || type == 'X' || type == 'o') {
      if (value.is_float()) fail("%{} format: an integer is required, not float", type);
      return integer(value, type, spec);
    }
    if (std::string_view("eEfFgG").find(type) == std::string_view::npos)
      fail("unsupported format character '{}'", type);
    return format_float(value.as_float(), spec);
  }

  static std::string integer(const Value& value, char type, const Specification& spec) {
    const std::optional<Int> whole = value.is_float() ? int_of(value.as_float()) : value.as_int();
    if (!whole) fail("cannot convert {} to an integer", repr_of(value.as_float()));
    std::string digits = integer_digits(*whole, type, false);
    const auto precision = static_cast<std::size_t>(spec.precision.value_or(0));
    if (digits.size() < precision) digits.insert(0, precision - digits.size(), '0');
    if (spec.is_alternate && type != 'd') digits.insert(0, {'0', type});
    return pad(sign_of(*whole < 0, spec.sign), digits, spec, '>');
  }

  Heap& heap_;
  const Value& format_;
  const std::string_view text_;
  const Value& arguments_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
};

// The state of one "...".format(arguments).
class BraceFormatter {
 public:
  BraceFormatter(Interpreter& vm, const Arguments& arguments) : vm_(vm), arguments_(arguments) {}

  std::string run(std::string_view text, int level) {
    if (level > 1) fail("a format's fields are nested too deeply");
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char c = text[at];
      const bool is_double = at + 1 < text.size() && text[at + 1] == c;
      if (c != '{' && c != '}') {
        out += c;
      } else if (is_double) {
        out += c;
        ++at;
      } else if (c == '}') {
        fail("single '}}' encountered in format string");
      } else {
        const std::size_t end = field_end(text, at);
        out += field(text.substr(at + 1, end - at - 1), level);
        at = end;
      }
      Heap::check_text_size(out.size());
    }
    return out;
  }

 private:
  static std::size_t field_end(std::string_view text, std::size_t at) {
    int open = 0;
    for (; at < text.size(); ++at) {
      if (text[at] == '{') ++open;
      if (text[at] == '}' && --open == 0) return at;
    }
    fail("expected '}}' before end of string");
  }

  std::string field(std::string_view text, int level) {
    const std::size_t colon = text.find(':');
    std::string_view name = text.substr(0, colon);
    char conversion = '\0';
    if (const std::size_t mark = name.find('!'); mark != name.npos) {
      if (mark + 2 != name.size()) fail("a conversion of a format field is one letter after '!'");
      conversion = name[mark + 1];
      name = name.substr(0, mark);
    }
    Value value = find(name);
    vm_.heap().spend_walk(value);
    if (conversion == 's') {
      value = vm_.heap().text(to_text(value));
    } else if (conversion == 'r') {
      value = vm_.heap().text(repr(value));
    } else if (conversion != '\0') {
      fail("unknown conversion '!{}' in a format field", conversion);
    }
    const std::string specification = colon == text.npos ? "" : run(text.substr(colon + 1), level + 1);
    return format_value(value, specification);
  }

  // "name.attribute[key]" or "0..." or "" for the next argument.
  Value find(std::string_view path) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, end));
    path.remove_prefix(end);
    while (!path.empty()) {
      const bool is_item = path[0] == '[';
      const std::size_t stop = is_item ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
      if (stop == path.npos || stop == 1) fail("a format field has an empty or unclosed part");
      const std::string_view key = path.substr(1, stop - 1);
      std::size_t digits = 0;
      const std::optional<std::int64_t> index = is_item ? take_number(key, digits) : std::nullopt;
      if (index && digits == key.size()) {
        value = vm_.item(value, Value::integer(*index));
      } else {
        value = is_item ? vm_.item(value, vm_.heap().text(std::string(key))) : vm_.attribute(value, key);
      }
      path.remove_prefix(is_item ? stop + 1 : stop);
    }
    return value;
  }

  Value argument(std::string_view name) {
    std::size_t digits = 0;
    std::optional<std::int64_t> index = name.empty() ? std::optional<std::int64_t>(next_++) : take_number(name, digits);
    if (index && digits == name.size()) {
      if (static_cast<std::size_t>(*index) >= arguments_.positional.size())
        fail("format() has no argument number {}", *index);
      return arguments_.positional[static_cast<std::size_t>(*index)];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    fail("format() has no argument named '{}'", name);
  }

  Interpreter& vm_;
  const Arguments& arguments_;
  std::int64_t next_ = 0;
};

}  // namespace

Value percent_format(Heap& heap, const Value& format, const Value& arguments) {
  return PercentFormatter(heap, format, arguments).run();
}

Value brace_format(Interpreter& vm, const Value& format, const Arguments& arguments) {
  return vm.heap().text_like(format, BraceFormatter(vm, arguments).run(format.as_text(), 0));
}

std::string format_value(const Value& value, std::string_view specification) {
  if (specification.empty()) return to_text(value);
  const Specification spec = parse_specification(specification);
  if (value.is_text()) return format_text(value.as_text(), spec);
  if (value.is_bool() && spec.type == '\0') return format_integer(value.as_int(), spec);
  if (value.is_integral()) return format_integer(value.as_int(), spec);
  if (value.is_float()) return format_float(value.as_float(), spec);
  fail("unsupported format string passed to {}.__format__", value.type_name());
}

}  // namespace steadfast::jinja
