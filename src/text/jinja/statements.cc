// Interpreter: statements.
#include <algorithm>

#include "text/jinja/builtins.h"
#include "text/jinja/deeper.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/printing.h"

namespace steadfast::jinja {

std::string Interpreter::run(const Body& body) {
  std::string out;
  out_ = &out;
  Scope* scope = heap_.open_scope(&globals_);
  static_cast<void>(execute(body, scope));
  out_ = nullptr;
  return out;
}

void Interpreter::write(std::string_view text) {
  Heap::check_text_size(out_->size() + text.size());
  heap_.spend_text(text.size());
  out_->append(text);
}

Interpreter::Flow Interpreter::execute(const Body& body, Scope* scope) {
  for (const Statement& statement : body) {
    const Flow flow = execute(statement, scope);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const Statement& statement, Scope* scope) {
  const Deeper deeper(*this, statement.line);
  switch (statement.kind) {
    case StatementKind::kText:
      write(statement.text);
      return Flow::kNormal;
    case StatementKind::kPrint:
      print(statement, scope);
      return Flow::kNormal;
    case StatementKind::kIf:
      return conditional(statement, scope);
    case StatementKind::kFor:
      return loop(statement, scope, items_of(heap_, evaluate(*statement.expressions[0], scope)), 1);
    case StatementKind::kSet:
      assign(*statement.target, evaluate(*statement.expressions[0], scope), scope);
      return Flow::kNormal;
    case StatementKind::kSetBlock:
      set_block(statement, scope);
      return Flow::kNormal;
    case StatementKind::kMacro:
      scope->set(statement.name, make_macro(statement, scope));
      return Flow::kNormal;
    case StatementKind::kCallBlock:
      call_block(statement, scope);
      return Flow::kNormal;
    case StatementKind::kFilterBlock:
      write(to_text(
          through_filters(statement.expressions[0].get(), heap_.text(captured(statement.bodies[0], scope)), scope)));
      return Flow::kNormal;
    case StatementKind::kWith:
      with(statement, scope);
      return Flow::kNormal;
    case StatementKind::kScope:
      return in_new_scope(statement.bodies[0], scope);
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

void Interpreter::print(const Statement& statement, Scope* scope) {
  for (const ExpressionPtr& expression : statement.expressions) {
    const Value value = evaluate(*expression, scope);
    if (value.is_text()) {
      write(value.as_text());
    } else {
      heap_.spend_walk(value);
      write(to_text(value));
    }
  }
}

Interpreter::Flow Interpreter::conditional(const Statement& statement, Scope* scope) {
  for (std::size_t i = 0; i < statement.expressions.size(); ++i) {
    if (evaluate(*statement.expressions[i], scope).truthy()) return execute(statement.bodies[i], scope);
  }
  if (statement.bodies.size() > statement.expressions.size()) return execute(statement.bodies.back(), scope);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::in_new_scope(const Body& body, Scope* scope) {
  Scope* inner = heap_.open_scope(scope);
  const Flow flow = execute(body, inner);
  heap_.close_scope(inner);
  return flow;
}

Interpreter::Flow Interpreter::loop(const Statement& statement, Scope* scope, std::vector<Value> items,
                                    std::int64_t depth) {
  Loop::Test test;
  if (statement.expressions[1] != nullptr) {
    test = [this, &statement, scope](const Value& candidate) {
      heap_.spend(1);
      Scope* inner = heap_.open_scope(scope);
      assign(*statement.target, candidate, inner);
      const bool passes = evaluate(*statement.expressions[1], inner).truthy();
      heap_.close_scope(inner);
      return passes;
    };
  }
  Loop* state = heap_.make<Loop>(std::move(items), std::move(test), depth);
  if (statement.is_recursive) {
    state->recursive_statement = &statement;
    state->scope = scope;
    scope->captured = true;
  }
  const Flow flow = iterations(statement, scope, *state);
  state->close();
  if (!state->completed && statement.bodies.size() > 1) return in_new_scope(statement.bodies[1], scope);
  return flow;
}

Interpreter::Flow Interpreter::iterations(const Statement& statement, Scope* scope, Loop& loop) {
  while (loop.advance()) {
    heap_.spend(3);
    Scope* inner = heap_.open_scope(scope);
    inner->set("loop", Value::object(&loop));
    assign(*statement.target, loop.current, inner);
    const Flow flow = execute(statement.bodies[0], inner);
    heap_.close_scope(inner);
    if (flow == Flow::kBreak) break;
    // Jinja runs `else` where no iteration came to its own end, so also after a break or nothing but continues.
    loop.completed = loop.completed || flow == Flow::kNormal;
  }
  return Flow::kNormal;
}

std::string Interpreter::captured(const Body& body, Scope* scope) {
  std::string text;
  std::string* outer = out_;
  out_ = &text;
  static_cast<void>(in_new_scope(body, scope));
  out_ = outer;
  return text;
}

void Interpreter::set_block(const Statement& statement, Scope* scope) {
  Value text = heap_.text(captured(statement.bodies[0], scope));
  assign(*statement.target, through_filters(statement.expressions[0].get(), std::move(text), scope), scope);
}

Value Interpreter::make_macro(const Statement& statement, Scope* scope) {
  for (Scope* outer = scope; outer != nullptr && !outer->captured; outer = outer->parent) outer->captured = true;
  return Value::object(heap_.make<Macro>(&statement, scope));
}

void Interpreter::call_block(const Statement& statement, Scope* scope) {
  const Expression& call_node = *statement.expressions[0];
  const Value callee = evaluate(*call_node.parts[0], scope);
  Arguments arguments = evaluate_arguments(call_node.arguments, scope);
  arguments.named.emplace_back("caller", make_macro(statement, scope));
  write(to_text(call(callee, std::move(arguments))));
}

void Interpreter::with(const Statement& statement, Scope* scope) {
  Scope* inner = heap_.open_scope(scope);
  for (std::size_t i = 0; i < statement.expressions.size(); i += 2) {
    assign(*statement.expressions[i], evaluate(*statement.expressions[i + 1], scope), inner);
  }
  static_cast<void>(execute(statement.bodies[0], inner));
  heap_.close_scope(inner);
}

void Interpreter::assign(const Expression& target, Value value, Scope* scope) {
  if (target.kind == ExpressionKind::kName) {
    heap_.spend(static_cast<std::int64_t>(scope->names.size() / 16));
    scope->set(target.name, std::move(value));
    return;
  }
  if (target.kind == ExpressionKind::kNamespaceAttribute) {
    const Value* object = scope->find(target.name);
    if (object == nullptr) fail("'{}' is undefined", target.name);
    if (!object->is_object(ObjectType::kNamespace)) {
      fail("cannot assign to an attribute of '{}': it is not a namespace", target.name);
    }
    auto& space = static_cast<Namespace&>(*object->object());
    heap_.spend(static_cast<std::int64_t>(space.attributes.size() / 16));
    space.set(target.value.as_text(), std::move(value));
    return;
  }
  const std::vector<Value> items = items_of(heap_, value);
  if (items.size() != target.parts.size()) {
    fail("cannot unpack {} value(s) into {} name(s)", items.size(), target.parts.size());
  }
  for (std::size_t i = 0; i < items.size(); ++i) assign(*target.parts[i], items[i], scope);
}

}  // namespace steadfast::jinja
