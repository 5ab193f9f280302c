// Methods of strings that search or cut: find_text_search_method.
#include <algorithm>
#include <iterator>

#include "text/jinja/builtins.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

const std::string& text_argument(const Call& call, const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_text()) fail("{}() needs a string, not '{}'", call.name, value.type_name());
  return value.as_text();
}

// The part of the string that start and stop leave to search. Unlike a slice, a start past the end finds nothing.
struct Part {
  std::string_view text;
  std::int64_t offset = 0;  // of its first code point
  bool is_valid = true;
};

Part searched_part(Call& call, const Value* start, const Value* stop) {
  std::string_view text = call.self.as_text();
  call.vm.heap().spend_text(text.size());
  const bool has_start = start != nullptr && !start->is_none();
  const bool has_stop = stop != nullptr && !stop->is_none();
  if (!has_start && !has_stop) return {text, 0, true};
  const auto size = static_cast<std::int64_t>(length(text));
  const auto bound = [&](const Value* value, std::int64_t fallback, bool is_given) {
    if (!is_given) return fallback;
    const std::int64_t index = to_index(*value, "a search's bound");
    return std::max<std::int64_t>(0, index < 0 ? index + size : index);
  };
  const std::int64_t from = bound(start, 0, has_start);
  const std::int64_t to = std::min(size, bound(stop, size, has_stop));
  if (from > to) return {{}, from, false};
  const std::size_t first = byte_of(text, static_cast<std::size_t>(from));
  text.remove_prefix(first);
  return {text.substr(0, byte_of(text, static_cast<std::size_t>(to - from))), from, true};
}

template <bool at_start>
Value has_end(Call& call) {
  const auto arguments = call.bind({"prefix", "start", "stop"}, 1);
  const Part part = searched_part(call, arguments[1], arguments[2]);
  const auto matches = [&](const Value& value) {
    const std::string& wanted = text_argument(call, value);
    return part.is_valid && (at_start ? part.text.starts_with(wanted) : part.text.ends_with(wanted));
  };
  if (!arguments[0]->is_tuple()) return Value::boolean(matches(*arguments[0]));
  const std::vector<Value>& options = arguments[0]->sequence()->items;
  call.vm.heap().spend(static_cast<std::int64_t>(options.size()));
  return Value::boolean(std::any_of(options.begin(), options.end(), matches));
}

// The code point where `wanted` starts, -1 if it is not there.
std::int64_t position(Call& call, bool from_end) {
  const auto arguments = call.bind({"sub", "start", "stop"}, 1);
  const std::string& wanted = text_argument(call, *arguments[0]);
  const Part part = searched_part(call, arguments[1], arguments[2]);
  if (!part.is_valid) return -1;
  const std::size_t found = from_end ? find_last(part.text, wanted) : find_first(part.text, wanted);
  if (found == part.text.npos) return -1;
  return part.offset + static_cast<std::int64_t>(length(part.text.substr(0, found)));
}

template <bool from_end>
Value find_text(Call& call) {
  return Value::integer(position(call, from_end));
}

template <bool from_end>
Value index_text(Call& call) {
  const std::int64_t found = position(call, from_end);
  if (found < 0) fail("substring not found");
  return Value::integer(found);
}

Value count_text(Call& call) {
  const auto arguments = call.bind({"sub", "start", "stop"}, 1);
  const std::string& wanted = text_argument(call, *arguments[0]);
  const Part part = searched_part(call, arguments[1], arguments[2]);
  if (!part.is_valid) return Value::integer(0);
  if (wanted.empty()) return Value::integer(static_cast<std::int64_t>(length(part.text)) + 1);
  std::int64_t count = 0;
  for (std::size_t at = find_first(part.text, wanted); at != part.text.npos;
       at = find_first(part.text, wanted, at + wanted.size()))
    ++count;
  return Value::integer(count);
}

using Parts = std::vector<std::string_view>;

// Where the last word of a text that does not end in white space starts.
std::size_t last_word(std::string_view text) {
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (is_space(code_point_at(text, start))) break;
    text = text.substr(0, start);
  }
  return text.size();
}

// At white space: runs of it count once, none at the ends. What a limit leaves whole is stripped only where it was cut.
Parts split_at_space(std::string_view text, std::int64_t limit, bool from_end) {
  Parts parts;
  const auto strip_front = [&] { text = strip(text, std::nullopt, from_end ? Sides::kRight : Sides::kLeft); };
  strip_front();
  while (!text.empty()) {
    if (limit-- == 0) {
      parts.push_back(text);
      break;
    }
    if (from_end) {
      const std::size_t start = last_word(text);
      parts.push_back(text.substr(start));
      text = text.substr(0, start);
    } else {
      std::size_t at = 0;
      while (at < text.size() && !is_space(code_point_at(text, at))) at += code_point_bytes(text, at);
      parts.push_back(text.substr(0, at));
      text = text.substr(at);
    }
    strip_front();
  }
  if (from_end) std::reverse(parts.begin(), parts.end());
  return parts;
}

Parts split_at(std::string_view text, std::string_view separator, std::int64_t limit, bool from_end) {
  std::vector<std::size_t> cuts;
  // From the end, matches are looked for in the text backwards: "aaa" at "aa" from the end is "a", "".
  const std::string backward = from_end ? std::string(text.rbegin(), text.rend()) : "";
  const std::string wanted = from_end ? std::string(separator.rbegin(), separator.rend()) : std::string(separator);
  const std::string_view searched = from_end ? std::string_view(backward) : text;
  for (std::size_t at = find_first(searched, wanted); at != searched.npos && limit-- != 0;
       at = find_first(searched, wanted, at + wanted.size())) {
    cuts.push_back(from_end ? text.size() - at - wanted.size() : at);
  }
  if (from_end) std::reverse(cuts.begin(), cuts.end());
  Parts parts;
  std::size_t start = 0;
  for (const std::size_t cut : cuts) {
    parts.push_back(text.substr(start, cut - start));
    start = cut + separator.size();
  }
  parts.push_back(text.substr(start));
  return parts;
}

Value list_of(Call& call, const Parts& parts) {
  std::vector<Value> items;
  call.vm.heap().spend(static_cast<std::int64_t>(parts.size()));
  for (const std::string_view part : parts) items.push_back(call.vm.heap().text_like(call.self, std::string(part)));
  return call.vm.heap().list(std::move(items));
}

template <bool from_end>
Value split_text(Call& call) {
  const auto arguments = call.bind({"sep", "maxsplit"});
  const std::string& text = call.self.as_text();
  const std::int64_t limit = arguments[1] == nullptr ? -1 : to_index(*arguments[1], "maxsplit");
  call.vm.heap().spend_text(text.size());
  if (arguments[0] == nullptr || arguments[0]->is_none()) {
    return list_of(call, split_at_space(text, limit, from_end));
  }
  const std::string& separator = text_argument(call, *arguments[0]);
  if (separator.empty()) fail("empty separator");
  return list_of(call, split_at(text, separator, limit, from_end));
}

Value split_lines_of(Call& call) {
  const auto arguments = call.bind({"keepends"});
  return list_of(call, split_lines(call.self.as_text(), arguments[0] != nullptr && arguments[0]->truthy()));
}

template <bool from_end>
Value partition_text(Call& call) {
  const auto arguments = call.bind({"sep"}, 1);
  const std::string& separator = text_argument(call, *arguments[0]);
  if (separator.empty()) fail("empty separator");
  const std::string& text = call.self.as_text();
  const std::size_t found = from_end ? find_last(text, separator) : find_first(text, separator);
  const auto part = [&](std::string value) { return call.vm.heap().text_like(call.self, std::move(value)); };
  if (found == text.npos) {
    return from_end ? call.vm.heap().tuple({part(""), part(""), part(text)})
                    : call.vm.heap().tuple({part(text), part(""), part("")});
  }
  return call.vm.heap().tuple(
      {part(text.substr(0, found)), part(separator), part(text.substr(found + separator.size()))});
}

constexpr NamedBuiltin kMethods[] = {
    {"count", count_text},        {"endswith", has_end<false>},         {"find", find_text<false>},
    {"index", index_text<false>}, {"partition", partition_text<false>}, {"rfind", find_text<true>},
    {"rindex", index_text<true>}, {"rpartition", partition_text<true>}, {"rsplit", split_text<true>},
    {"split", split_text<false>}, {"splitlines", split_lines_of},       {"startswith", has_end<true>},
};

}  // namespace

Builtin find_text_search_method(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kMethods), std::end(kMethods), [&](const auto& m) { return m.name == name; });
  return found == std::end(kMethods) ? nullptr : found->builtin;
}

}  // namespace steadfast::jinja
