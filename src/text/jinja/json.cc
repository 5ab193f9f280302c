// JSON in and out: from_json and to_json of printing.h.
#include <algorithm>
#include <cmath>

#include "text/jinja/numbers.h"
#include "text/jinja/printing.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void write(const Value& value) {
    if (value.is_text()) {
      write_text(value.as_text());
    } else if (value.is_none()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "true" : "false";
    } else if (value.is_int()) {
      out_ += repr_of(value.as_int());
    } else if (value.is_float()) {
      out_ += float_text(value.as_float());
    } else if (value.is_list() || value.is_tuple()) {
      write_list(value.sequence()->items);
    } else if (value.dict() != nullptr) {
      write_dict(*value.dict());
    } else {
      fail("Object of type {} is not JSON serializable", value.type_name());
    }
    Heap::check_text_size(out_.size());
  }
  std::string take() { return std::move(out_); }

 private:
  static std::string float_text(double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return repr_of(number);
  }

  void write_escape(std::int32_t unit) { out_ += fmt::format("\\u{:04x}", unit); }

  void write_text(const std::string& text) {
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t bytes = code_point_bytes(text, at);
      const std::int32_t c = code_point_at(text, at);
      constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
      constexpr std::string_view kLetters = "\"\\nrtfb";
      const std::size_t named = c < 0x80 ? kShort.find(static_cast<char>(c)) : kShort.npos;
      if (named != kShort.npos) {
        out_ += '\\';
        out_ += kLetters[named];
      } else if (c < 0x20) {
        write_escape(c);
      } else if (c < 0x7F || !style_.ensure_ascii) {
        out_.append(text, at, bytes);
      } else if (c == 0x7F) {
        out_ += '\x7f';
      } else if (c < 0x10000) {
        write_escape(c);
      } else {
        write_escape(0xD800 + ((c - 0x10000) >> 10));
        write_escape(0xDC00 + ((c - 0x10000) & 0x3FF));
      }
      at += bytes;
    }
    out_ += '"';
  }

  void new_line(int level) {
    if (!style_.indent) return;
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *style_.indent;
    Heap::check_text_size(out_.size());
  }

  void write_list(const std::vector<Value>& items) {
    out_ += '[';
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out_ += style_.item_separator;
      new_line(level_);
      write(items[i]);
    }
    --level_;
    if (!items.empty()) new_line(level_);
    out_ += ']';
  }

  static std::string key_text(const Value& key) {
    if (key.is_text()) return key.as_text();
    if (key.is_none()) return "null";
    if (key.is_bool()) return key.as_bool() ? "true" : "false";
    if (key.is_int()) return repr_of(key.as_int());
    if (key.is_float()) return float_text(key.as_float());
    fail("keys must be str, int, float, bool or None, not {}", key.type_name());
  }

  void write_dict(const Dict& dict) {
    Entries sorted;
    if (style_.sort_keys) {
      sorted = dict.entries;
      std::stable_sort(sorted.begin(), sorted.end(),
                       [](const auto& a, const auto& b) { return ordered(Comparison::kLess, a.first, b.first); });
    }
    const Entries& entries = style_.sort_keys ? sorted : dict.entries;
    out_ += '{';
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i != 0) out_ += style_.item_separator;
      new_line(level_);
      write_text(key_text(entries[i].first));
      out_ += style_.key_separator;
      write(entries[i].second);
    }
    --level_;
    if (!entries.empty()) new_line(level_);
    out_ += '}';
  }

  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

using Json = nlohmann::ordered_json;

Value convert(Heap& heap, const Json& json, std::string_view what, std::uint32_t level) {
  if (level > kMaxValueDepth) fail("{} is nested more than {} levels deep", what, kMaxValueDepth);
  switch (json.type()) {
    case Json::value_t::null:
      return Value::none();
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return Value::integer(json.get<std::uint64_t>());
    case Json::value_t::number_float:
      return Value::real(json.get<double>());
    case Json::value_t::string:
      return heap.text(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(convert(heap, item, what, level + 1));
      return heap.list(std::move(items));
    }
    case Json::value_t::object: {
      Entries entries;
      entries.reserve(json.size());
      for (const auto& [key, item] : json.items())
        entries.emplace_back(heap.text(key), convert(heap, item, what, level + 1));
      return heap.dict(std::move(entries));
    }
    default:
      fail("{} holds a value that JSON does not have", what);
  }
}

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.write(value);
  return writer.take();
}

Value from_json(Heap& heap, const Json& json, std::string_view what) { return convert(heap, json, what, 1); }

}  // namespace steadfast::jinja
