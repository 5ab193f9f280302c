// Values: accounting of bytes, lookup in dicts, types and truth.
#include "text/jinja/value.h"

#include "text/jinja/objects.h"
#include "text/jinja/operators.h"

namespace steadfast::jinja {
namespace {

constexpr std::size_t kIndexFrom = 8;  // dicts with fewer entries are searched one by one

std::size_t bytes_of(const std::string& text) { return sizeof(Text) + text.capacity(); }
std::size_t bytes_of(const std::vector<Value>& items) { return sizeof(Sequence) + items.capacity() * sizeof(Value); }
std::size_t bytes_of(const Entries& entries) { return sizeof(Dict) + entries.capacity() * 3 * sizeof(Value); }

}  // namespace

Text::Text(std::string text_in, bool safe_in, Meter* meter_in)
    : text(std::move(text_in)), safe(safe_in), meter_(meter_in) {
  if (meter_ != nullptr) meter_->bytes += bytes_of(text);
}
Text::~Text() {
  if (meter_ != nullptr) meter_->bytes -= bytes_of(text);
}

Sequence::Sequence(SequenceType type_in, std::vector<Value> items_in, Extent extent_in, Meter* meter_in)
    : type(type_in), items(std::move(items_in)), extent(extent_in), meter_(meter_in) {
  meter_->bytes += bytes_of(items);
}
Sequence::~Sequence() { meter_->bytes -= bytes_of(items); }

Dict::Dict(Entries entries_in, Extent extent_in, Meter* meter_in)
    : entries(std::move(entries_in)), extent(extent_in), meter_(meter_in) {
  meter_->bytes += bytes_of(entries);
  if (entries.size() < kIndexFrom) return;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].first.is_text()) by_text_.emplace(entries[i].first.as_text(), i);
  }
}
Dict::~Dict() { meter_->bytes -= bytes_of(entries); }

const Value* Dict::find(std::string_view key) const {
  if (entries.size() >= kIndexFrom) {
    const auto found = by_text_.find(key);
    return found == by_text_.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& [name, value] : entries) {
    if (name.is_text() && name.as_text() == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.is_text()) return find(std::string_view(key.as_text()));
  for (const auto& [name, value] : entries) {
    if (!name.is_text() && equal(name, key)) return &value;
  }
  return nullptr;
}

Value Value::undefined(std::string reason) {
  return Value(Data(Undefined{std::make_shared<const std::string>(std::move(reason))}));
}

Value Value::constant(std::string text) {
  return Value::text(std::make_shared<const Text>(std::move(text), false, nullptr));
}

Sequence* Value::sequence() const {
  const auto* found = std::get_if<std::shared_ptr<Sequence>>(&data_);
  return found == nullptr ? nullptr : found->get();
}

const Dict* Value::dict() const {
  const auto* found = std::get_if<std::shared_ptr<const Dict>>(&data_);
  return found == nullptr ? nullptr : found->get();
}

Object* Value::object() const {
  Object* const* found = std::get_if<Object*>(&data_);
  return found == nullptr ? nullptr : *found;
}

std::string Value::undefined_reason() const {
  const auto& reason = std::get<Undefined>(data_).reason;
  return reason == nullptr ? "the value is undefined" : *reason;
}

Extent Value::extent() const {
  if (is_text()) return {0, 1 + as_text().size() / 64};
  if (const Sequence* s = sequence()) return s->extent;
  if (const Dict* d = dict()) return d->extent;
  return {};
}

std::string_view Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_int()) return "int";
  if (is_float()) return "float";
  if (is_text()) return is_safe_text() ? "Markup" : "str";
  if (dict() != nullptr) return "dict";
  if (const Sequence* s = sequence()) {
    constexpr std::string_view kNames[] = {"list", "tuple", "generator", "dict_keys", "dict_values", "dict_items"};
    return kNames[static_cast<std::size_t>(s->type)];
  }
  constexpr std::string_view kNames[] = {"range", "Namespace", "Macro", "LoopContext", "function", "Joiner", "Cycler"};
  return kNames[static_cast<std::size_t>(object()->type)];
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_bool()) return as_bool();
  if (is_int()) return as_int() != 0;
  if (is_float()) return as_float() != 0.0;
  if (is_text()) return !as_text().empty();
  if (const Dict* d = dict()) return !d->entries.empty();
  if (const Sequence* s = sequence()) return s->type == SequenceType::kGenerator || !s->items.empty();
  if (is_object(ObjectType::kRange)) return static_cast<const Range*>(object())->size() != 0;
  return true;
}

bool Value::same_as(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (is_none()) return true;
  if (is_bool()) return as_bool() == other.as_bool();
  // Python shares small integers and the template's own strings; equal numbers and strings count as the same here.
  if (is_int()) return as_int() == other.as_int();
  if (is_float()) return as_float() == other.as_float();
  if (is_text()) return as_text() == other.as_text();
  if (sequence() != nullptr) return sequence() == other.sequence();
  if (dict() != nullptr) return dict() == other.dict();
  if (object() != nullptr) return object() == other.object();
  return std::get<Undefined>(data_).reason == std::get<Undefined>(other.data_).reason;
}

}  // namespace steadfast::jinja
