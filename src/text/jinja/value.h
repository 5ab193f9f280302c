// Values of the template language, with Python's types and meaning. Text is UTF-8; lengths and indices count code
// points. Lists, tuples and dicts never change once made and are shared by reference; their nesting is bounded, so
// dropping the last reference never recurses far. Everything that can change (namespaces, loops, macros) belongs to the
// Heap and lives as long as the rendering. Errors are thrown as Error and become a Status in template.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/error.h"

namespace steadfast::jinja {

__extension__ typedef __int128 Int;  // Python's integers, up to 127 bits

class Value;

// Bytes held by values that are alive; each value returns its share when it goes.
struct Meter {
  std::size_t bytes = 0;
};

// How deep a value is nested, and how much a walk over all of it visits (a shared part counts each time it is met).
struct Extent {
  std::uint32_t depth = 0;
  std::uint64_t weight = 1;
};

// A string. `safe` is Jinja's Markup: joined with +, it escapes the other side for HTML.
struct Text {
  Text(std::string text_in, bool safe_in, Meter* meter_in);
  ~Text();
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  const std::string text;
  const bool safe;

 private:
  Meter* meter_;  // null: a constant of the template
};

enum class SequenceType : std::uint8_t { kList, kTuple, kGenerator, kDictKeys, kDictValues, kDictItems };

// An ordered collection. A generator is one too: it was computed at once and is read once, from `next` on.
struct Sequence {
  Sequence(SequenceType type_in, std::vector<Value> items_in, Extent extent_in, Meter* meter_in);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  const SequenceType type;
  const std::vector<Value> items;
  const Extent extent;
  std::size_t next = 0;  // generators only

 private:
  Meter* meter_;
};

using Entries = std::vector<std::pair<Value, Value>>;

// A dict in insertion order; the caller has made the keys unique and hashable (see Heap::dict).
struct Dict {
  Dict(Entries entries_in, Extent extent_in, Meter* meter_in);
  ~Dict();
  Dict(const Dict&) = delete;
  Dict& operator=(const Dict&) = delete;
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const Entries entries;
  const Extent extent;

 private:
  std::unordered_map<std::string_view, std::size_t> by_text_;  // only when there are many entries
  Meter* meter_;
};

enum class ObjectType : std::uint8_t { kRange, kNamespace, kMacro, kLoop, kFunction, kJoiner, kCycler };

// What belongs to the Heap: see objects.h.
struct Object {
  explicit Object(ObjectType type_in) : type(type_in) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  const ObjectType type;
};

class Value {
 public:
  Value() = default;  // undefined, without a reason
  // Undefined, with the sentence that an error about its use says.
  static Value undefined(std::string reason);
  static Value none() { return Value(Data(None{})); }
  static Value boolean(bool b) { return Value(Data(b)); }
  static Value integer(Int i) { return Value(Data(i)); }
  static Value real(double d) { return Value(Data(d)); }
  static Value text(std::shared_ptr<const Text> t) { return Value(Data(std::move(t))); }
  static Value sequence(std::shared_ptr<Sequence> s) { return Value(Data(std::move(s))); }
  static Value dict(std::shared_ptr<const Dict> d) { return Value(Data(std::move(d))); }
  static Value object(Object* o) { return Value(Data(o)); }
  // A string that belongs to the template itself and counts against nothing.
  static Value constant(std::string text);

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<Int>(data_); }  // not bool
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_integral() const { return is_bool() || is_int(); }
  bool is_number() const { return is_integral() || is_float(); }
  bool is_text() const { return std::holds_alternative<std::shared_ptr<const Text>>(data_); }
  bool is_safe_text() const { return is_text() && std::get<std::shared_ptr<const Text>>(data_)->safe; }
  bool is_sequence(SequenceType type) const { return sequence() != nullptr && sequence()->type == type; }
  bool is_list() const { return is_sequence(SequenceType::kList); }
  bool is_tuple() const { return is_sequence(SequenceType::kTuple); }

  bool as_bool() const { return std::get<bool>(data_); }
  Int as_int() const { return is_bool() ? Int{as_bool()} : std::get<Int>(data_); }
  double as_float() const { return is_float() ? std::get<double>(data_) : static_cast<double>(as_int()); }
  const std::string& as_text() const { return std::get<std::shared_ptr<const Text>>(data_)->text; }
  Sequence* sequence() const;  // null: not one
  const Dict* dict() const;    // null: not one
  Object* object() const;      // null: not one
  bool is_object(ObjectType type) const { return object() != nullptr && object()->type == type; }
  // What an error about using this undefined value says.
  std::string undefined_reason() const;

  Extent extent() const;
  std::string_view type_name() const;  // as Python's type(x).__name__
  bool truthy() const;
  bool same_as(const Value& other) const;  // Python's `is`

 private:
  struct Undefined {
    std::shared_ptr<const std::string> reason;
  };
  struct None {};
  using Data = std::variant<Undefined, None, bool, Int, double, std::shared_ptr<const Text>, std::shared_ptr<Sequence>,
                            std::shared_ptr<const Dict>, Object*>;
  explicit Value(Data data) : data_(std::move(data)) {}
  Data data_;
};

}  // namespace steadfast::jinja
