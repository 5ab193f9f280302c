// Filters that make text from text: find_text_filter.
#include <algorithm>
#include <iterator>

#include "text/jinja/builtins.h"
#include "text/jinja/format.h"
#include "text/jinja/printing.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

// Jinja's soft_str: strings stay what they are, everything else is printed.
Value soft_text(const Call& call) {
  if (call.self.is_text()) return call.self;
  call.vm.heap().spend_walk(call.self);
  return call.vm.heap().text(to_text(call.self));
}

template <std::string (*change)(std::string_view)>
Value change_text(Call& call) {
  static_cast<void>(call.bind({}));
  const Value text = soft_text(call);
  return call.vm.heap().text_like(text, change(text.as_text()));
}

// Jinja's own title: words start after spaces, hyphens and opening brackets.
std::string title_words(std::string_view text) {
  const auto starts_word = [](std::int32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string out;
  std::string rest;
  const auto flush = [&] {
    out += lower(rest);
    rest.clear();
  };
  bool is_first = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = code_point_bytes(text, at);
    const std::string_view c = text.substr(at, bytes);
    if (starts_word(code_point_at(text, at))) {
      flush();
      out += c;
      is_first = true;
    } else if (is_first) {
      out += upper(c);
      is_first = false;
    } else {
      rest += c;
    }
    at += bytes;
  }
  flush();
  return out;
}

Value title_filter(Call& call) {
  static_cast<void>(call.bind({}));
  return call.vm.heap().text(title_words(soft_text(call).as_text()));
}

Value trim_filter(Call& call) {
  const auto arguments = call.bind({"chars"});
  const Value text = soft_text(call);
  std::optional<std::string_view> chars;
  if (arguments[0] != nullptr && !arguments[0]->is_none()) {
    if (!arguments[0]->is_text()) fail("strip arg must be None or str");
    chars = arguments[0]->as_text();
  }
  return call.vm.heap().text_like(text, std::string(strip(text.as_text(), chars, Sides::kBoth)));
}

Value replace_filter(Call& call) {
  const auto arguments = call.bind({"old", "new", "count"}, 2);
  Heap& heap = call.vm.heap();
  heap.spend_walk(call.self);
  heap.spend_walk(*arguments[0]);
  heap.spend_walk(*arguments[1]);
  Call method{call.vm, "replace", heap.text(to_text(call.self)), {}};
  method.arguments.positional = {heap.text(to_text(*arguments[0])), heap.text(to_text(*arguments[1]))};
  if (arguments[2] != nullptr && !arguments[2]->is_none()) method.arguments.positional.push_back(*arguments[2]);
  return find_text_method("replace")(method);
}

Value indent_filter(Call& call) {
  const auto arguments = call.bind({"width", "first", "blank"});
  if (!call.self.is_text()) {
    if (call.self.is_undefined()) fail_undefined(call.self);
    fail("indent needs a string, not '{}'", call.self.type_name());
  }
  std::string indentation = "    ";
  if (arguments[0] != nullptr && arguments[0]->is_text()) {
    indentation = arguments[0]->as_text();
  } else if (arguments[0] != nullptr) {
    const std::int64_t width = to_index(*arguments[0], "indent's width");
    if (width > 10'000) fail("indent's width is more than 10000");
    indentation.assign(static_cast<std::size_t>(std::max<std::int64_t>(0, width)), ' ');
  }
  const auto is_set = [&](std::size_t i) { return arguments[i] != nullptr && arguments[i]->truthy(); };
  const std::string text = call.self.as_text() + "\n";
  std::string out;
  bool is_first = true;
  for (const std::string_view line : split_lines(text, false)) {
    if (!is_first) out += '\n';
    if (is_first ? is_set(1) : (is_set(2) || !line.empty())) out += indentation;
    out += line;
    is_first = false;
    Heap::check_text_size(out.size());
  }
  return call.vm.heap().text_like(call.self, std::move(out));
}

Value format_filter(Call& call) {
  Heap& heap = call.vm.heap();
  if (!call.arguments.positional.empty() && !call.arguments.named.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  if (call.arguments.named.empty()) return percent_format(heap, soft_text(call), heap.tuple(call.arguments.positional));
  Entries entries;
  for (const auto& [name, value] : call.arguments.named) entries.emplace_back(heap.text(name), value);
  return percent_format(heap, soft_text(call), heap.dict(std::move(entries)));
}

Value truncate_filter(Call& call) {
  const auto arguments = call.bind({"length", "killwords", "end", "leeway"});
  const std::string end = arguments[2] == nullptr ? "..." : to_text(*arguments[2]);
  const std::int64_t limit = arguments[0] == nullptr ? 255 : to_index(*arguments[0], "truncate's length");
  const bool has_leeway = arguments[3] != nullptr && !arguments[3]->is_none();
  const std::int64_t leeway = has_leeway ? to_index(*arguments[3], "truncate's leeway") : 5;
  const std::int64_t kept = limit - static_cast<std::int64_t>(length(end));
  if (kept < 0 || leeway < 0) fail("truncate's length must be at least that of its end, and its leeway not negative");
  const std::int64_t size = length_of(call.self);
  if (size < 0) fail("object of type '{}' has no len()", call.self.type_name());
  if (size <= limit + leeway) return call.self;
  if (!call.self.is_text()) fail("truncate needs a string, not '{}'", call.self.type_name());
  const std::string& text = call.self.as_text();
  std::string result = text.substr(0, byte_of(text, static_cast<std::size_t>(kept)));
  if (arguments[1] == nullptr || !arguments[1]->truthy()) result = result.substr(0, result.rfind(' '));
  return call.vm.heap().text_like(call.self, result + end);
}

Value center_filter(Call& call) {
  const auto arguments = call.bind({"width"});
  Call method{call.vm, "center", soft_text(call), {}};
  method.arguments.positional.push_back(arguments[0] == nullptr ? Value::integer(80) : *arguments[0]);
  return find_text_method("center")(method);
}

Value wordcount_filter(Call& call) {
  static_cast<void>(call.bind({}));
  const Value text = soft_text(call);
  const std::string& words = text.as_text();
  std::int64_t count = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < words.size(); at += code_point_bytes(words, at)) {
    const std::string_view c = std::string_view(words).substr(at, code_point_bytes(words, at));
    const bool is_part = c == "_" || is_class(c, TextClass::kAlphanumeric);
    if (is_part && !in_word) ++count;
    in_word = is_part;
  }
  return Value::integer(count);
}

constexpr NamedBuiltin kFilters[] = {
    {"capitalize", change_text<capitalize>},
    {"center", center_filter},
    {"format", format_filter},
    {"indent", indent_filter},
    {"lower", change_text<lower>},
    {"replace", replace_filter},
    {"title", title_filter},
    {"trim", trim_filter},
    {"truncate", truncate_filter},
    {"upper", change_text<upper>},
    {"wordcount", wordcount_filter},
};

}  // namespace

Builtin find_text_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const auto& f) { return f.name == name; });
  return found == std::end(kFilters) ? nullptr : found->builtin;
}

}  // namespace steadfast::jinja
