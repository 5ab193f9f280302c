// The objects of a rendering that can change or carry state. They belong to its Heap and go with it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace steadfast::jinja {

class Interpreter;
struct Statement;

// The arguments of a call, evaluated.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// A call of a filter, test, method or global function. `self` is what the filter, test or method applies to.
struct Call {
  Interpreter& vm;
  std::string_view name;
  Value self;
  Arguments arguments;

  // The arguments in the order of `names`; null where one was not given. Too many, unknown, doubled and missing ones
  // (of the first `required`) are errors.
  std::vector<const Value*> bind(std::initializer_list<std::string_view> names, std::size_t required = 0) const;
};
using Builtin = Value (*)(Call& call);

// The names of one block of the template. Freed when its block ends, unless a macro was made within.
struct Scope {
  Scope* parent = nullptr;
  bool captured = false;
  std::vector<std::pair<std::string_view, Value>> names;

  const Value* find_here(std::string_view name) const;
  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

struct Range : Object {
  Range(std::int64_t start_in, std::int64_t stop_in, std::int64_t step_in)
      : Object(ObjectType::kRange), start(start_in), stop(stop_in), step(step_in) {}
  const std::int64_t start, stop, step;  // |values| below 2^62, step not 0: checked by whoever makes one
  std::int64_t size() const;
  Value at(std::int64_t index) const { return Value::integer(start + index * step); }
};

struct Namespace : Object {
  Namespace() : Object(ObjectType::kNamespace) {}
  std::vector<std::pair<std::string, Value>> attributes;
  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

struct Macro : Object {
  Macro(const Statement* definition_in, Scope* scope_in)
      : Object(ObjectType::kMacro), definition(definition_in), scope(scope_in) {}
  const Statement* const definition;  // a macro or a call block
  Scope* const scope;                 // where it was made
};

// The state behind `loop`. A filtered loop (`for x in y if c`) tests items only as it reaches them, as Jinja does.
struct Loop : Object {
  using Test = std::function<bool(const Value&)>;
  Loop(std::vector<Value> items_in, Test test_in, std::int64_t depth_in)
      : Object(ObjectType::kLoop), items(std::move(items_in)), test(std::move(test_in)), depth(depth_in) {}

  bool advance();  // to the next item; false at the end
  bool last();
  std::int64_t length();
  // Drops the items; counts stay. Items that a break left over are not tested, so their number is then unknown.
  void close();

  std::vector<Value> items;
  Test test;  // empty: every item
  const std::int64_t depth;
  std::int64_t index = -1;  // Jinja's index0
  bool completed = false;   // an iteration ran to its end
  bool closed = false;
  std::size_t position = 0;
  Value current;
  std::optional<Value> before, after;
  std::optional<std::int64_t> known_length;
  std::optional<std::vector<Value>> changed;       // what loop.changed() saw last
  const Statement* recursive_statement = nullptr;  // for `recursive` loops: what loop(...) runs
  Scope* scope = nullptr;

 private:
  const std::optional<Value>& peek();
};

// A builtin, bound to what it applies to when it is a method.
struct Function : Object {
  Function(std::string_view name_in, Builtin builtin_in, Value self_in)
      : Object(ObjectType::kFunction), name(name_in), builtin(builtin_in), self(std::move(self_in)) {}
  const std::string name;
  const Builtin builtin;
  const Value self;
};

struct Joiner : Object {
  explicit Joiner(Value separator_in) : Object(ObjectType::kJoiner), separator(std::move(separator_in)) {}
  const Value separator;
  bool used = false;
};

struct Cycler : Object {
  explicit Cycler(std::vector<Value> items_in) : Object(ObjectType::kCycler), items(std::move(items_in)) {}
  const std::vector<Value> items;
  std::size_t position = 0;
};

}  // namespace steadfast::jinja
