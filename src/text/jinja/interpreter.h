// Runs a syntax tree: statements append to the output, expressions give values. One Interpreter serves one rendering.
// Names follow Jinja's scopes: a for iteration, a macro, a call block, a set block and `with` have their own, `if` does
// not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja/heap.h"
#include "text/jinja/statement.h"

namespace steadfast::jinja {

class Interpreter {
 public:
  // `now`: seconds since 1970, for strftime_now.
  explicit Interpreter(std::int64_t now) : now_(now) {}

  Heap& heap() { return heap_; }
  std::int64_t now() {
    clock_read_ = true;
    return now_;
  }
  bool clock_read() const { return clock_read_; }  // whether what was printed may depend on `now`
  int line() const { return line_; }               // being evaluated: where an error without a line belongs
  Scope& globals() { return globals_; }

  std::string run(const Body& body);

  // value | name(arguments), value is name(arguments), callee(arguments).
  Value filter(std::string_view name, const Value& value, Arguments arguments);
  bool test(std::string_view name, const Value& value, Arguments arguments);
  Value call(const Value& callee, Arguments arguments);

  // Jinja's object.name and object[key]: undefined where there is none.
  Value attribute(const Value& object, std::string_view name);
  Value item(const Value& object, const Value& key);
  // A text's format fields and filters' attribute="a.b.0": item() along the dots.
  Value attribute_path(const Value& object, const Value& path);

 private:
  enum class Flow : std::uint8_t { kNormal, kBreak, kContinue };
  class Deeper;

  Flow execute(const Body& body, Scope* scope);
  Flow execute(const Statement& statement, Scope* scope);
  Flow conditional(const Statement& statement, Scope* scope);
  Flow loop(const Statement& statement, Scope* scope, std::vector<Value> items, std::int64_t depth);
  Flow iterations(const Statement& statement, Scope* scope, Loop& loop);
  Flow in_new_scope(const Body& body, Scope* scope);
  void print(const Statement& statement, Scope* scope);
  void set_block(const Statement& statement, Scope* scope);
  void call_block(const Statement& statement, Scope* scope);
  void with(const Statement& statement, Scope* scope);
  void assign(const Expression& target, Value value, Scope* scope);
  Value make_macro(const Statement& statement, Scope* scope);
  // What the body prints, in a scope of its own.
  std::string captured(const Body& body, Scope* scope);
  void write(std::string_view text);

  Value evaluate(const Expression& node, Scope* scope);
  Value evaluate_node(const Expression& node, Scope* scope);
  Value lookup(const Expression& node, const Scope* scope);
  Value evaluate_call(const Expression& node, Scope* scope);
  Value evaluate_slice(const Expression& node, Scope* scope);
  Value evaluate_compare(const Expression& node, Scope* scope);
  Value evaluate_conditional(const Expression& node, Scope* scope);
  Value evaluate_filter(const Expression& node, const Value& subject, Scope* scope);
  // A block's text through the filters at its head, innermost first.
  Value through_filters(const Expression* node, Value text, Scope* scope);
  Value dict_of(const Expression& node, Scope* scope);
  std::vector<Value> evaluate_all(const std::vector<ExpressionPtr>& nodes, Scope* scope);
  Arguments evaluate_arguments(const CallArguments& arguments, Scope* scope);

  Value call_macro(const Macro& macro, Arguments arguments);
  void bind_parameters(const Statement& macro, Arguments& arguments, Scope* scope);
  Value call_loop(Loop& loop, Arguments arguments);
  Value call_builtin(Builtin builtin, std::string_view name, const Value& self, Arguments arguments);

  Heap heap_;
  std::int64_t now_;
  Scope globals_;
  std::string* out_ = nullptr;
  int line_ = 1;
  int depth_ = 0;
  bool clock_read_ = false;
};

}  // namespace steadfast::jinja
