// Interpreter: expressions.
#include <algorithm>

#include "text/jinja/access.h"
#include "text/jinja/builtins.h"
#include "text/jinja/deeper.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/printing.h"

namespace steadfast::jinja {

Value Interpreter::evaluate(const Expression& node, Scope* scope) {
  const Deeper deeper(*this, node.line);
  return evaluate_node(node, scope);
}

Value Interpreter::evaluate_node(const Expression& node, Scope* scope) {
  const auto part = [&](std::size_t i) { return evaluate(*node.parts[i], scope); };
  switch (node.kind) {
    case ExpressionKind::kConstant:
      return node.value;
    case ExpressionKind::kName:
      return lookup(node, scope);
    case ExpressionKind::kList:
      return heap_.list(evaluate_all(node.parts, scope));
    case ExpressionKind::kTuple:
      return heap_.tuple(evaluate_all(node.parts, scope));
    case ExpressionKind::kDict:
      return dict_of(node, scope);
    case ExpressionKind::kAttribute:
      return attribute(part(0), node.name);
    case ExpressionKind::kItem: {
      const Value object = part(0);
      return item(object, part(1));
    }
    case ExpressionKind::kSlice:
      return evaluate_slice(node, scope);
    case ExpressionKind::kCall:
      return evaluate_call(node, scope);
    case ExpressionKind::kFilter:
      return evaluate_filter(node, part(0), scope);
    case ExpressionKind::kTest: {
      const Value value = part(0);
      return Value::boolean(test(node.name, value, evaluate_arguments(node.arguments, scope)));
    }
    case ExpressionKind::kNot:
      return Value::boolean(!part(0).truthy());
    case ExpressionKind::kNegative:
      return negative(part(0));
    case ExpressionKind::kPositive:
      return positive(part(0));
    case ExpressionKind::kBinary: {
      const Value left = part(0);
      return apply(heap_, node.operation, left, part(1));
    }
    case ExpressionKind::kConcat: {
      std::string text;
      for (const ExpressionPtr& operand : node.parts) {
        const Value value = evaluate(*operand, scope);
        heap_.spend_walk(value);
        text += to_text(value);
        Heap::check_text_size(text.size());
      }
      return heap_.text(std::move(text));
    }
    case ExpressionKind::kCompare:
      return evaluate_compare(node, scope);
    case ExpressionKind::kAnd: {
      Value left = part(0);
      return left.truthy() ? part(1) : left;
    }
    case ExpressionKind::kOr: {
      Value left = part(0);
      return left.truthy() ? left : part(1);
    }
    case ExpressionKind::kConditional:
      return evaluate_conditional(node, scope);
    case ExpressionKind::kNamespaceAttribute:
      break;
  }
  fail("'{}' cannot be evaluated", node.name);
}

Value Interpreter::lookup(const Expression& node, const Scope* scope) {
  for (; scope != nullptr; scope = scope->parent) {
    heap_.spend(static_cast<std::int64_t>(scope->names.size() / 16));
    if (const Value* found = scope->find_here(node.name)) return *found;
  }
  return Value::undefined(fmt::format("'{}' is undefined", node.name));
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExpressionPtr>& nodes, Scope* scope) {
  std::vector<Value> values;
  values.reserve(nodes.size());
  for (const ExpressionPtr& node : nodes) values.push_back(evaluate(*node, scope));
  return values;
}

Value Interpreter::dict_of(const Expression& node, Scope* scope) {
  Entries entries;
  for (std::size_t i = 0; i < node.parts.size(); i += 2) {
    Value key = evaluate(*node.parts[i], scope);
    entries.emplace_back(std::move(key), evaluate(*node.parts[i + 1], scope));
  }
  return heap_.dict(std::move(entries));
}

Arguments Interpreter::evaluate_arguments(const CallArguments& nodes, Scope* scope) {
  Arguments arguments;
  arguments.positional = evaluate_all(nodes.positional, scope);
  for (const auto& [name, node] : nodes.named) arguments.named.emplace_back(name, evaluate(*node, scope));
  if (nodes.more_positional != nullptr) {
    const std::vector<Value> more = items_of(heap_, evaluate(*nodes.more_positional, scope));
    arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
  }
  if (nodes.more_named != nullptr) {
    const Value more = evaluate(*nodes.more_named, scope);
    if (more.dict() == nullptr) fail("argument after ** must be a mapping, not {}", more.type_name());
    heap_.spend(static_cast<std::int64_t>(more.dict()->entries.size()));
    for (const auto& [name, value] : more.dict()->entries) {
      if (!name.is_text()) fail("keywords must be strings");
      arguments.named.emplace_back(name.as_text(), value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Expression& node, Scope* scope) {
  const Expression& callee = *node.parts[0];
  if (callee.kind == ExpressionKind::kAttribute) {  // a method: no bound function needs to be made
    const Value object = evaluate(*callee.parts[0], scope);
    if (const Builtin method = find_method(object, callee.name)) {
      return call_builtin(method, callee.name, object, evaluate_arguments(node.arguments, scope));
    }
    const Value found = attribute(object, callee.name);
    return call(found, evaluate_arguments(node.arguments, scope));
  }
  const Value found = evaluate(callee, scope);
  return call(found, evaluate_arguments(node.arguments, scope));
}

Value Interpreter::evaluate_filter(const Expression& node, const Value& subject, Scope* scope) {
  return filter(node.name, subject, evaluate_arguments(node.arguments, scope));
}

Value Interpreter::through_filters(const Expression* node, Value text, Scope* scope) {
  if (node == nullptr) return text;
  const Deeper deeper(*this, node->line);
  return evaluate_filter(*node, through_filters(node->parts[0].get(), std::move(text), scope), scope);
}

Value Interpreter::evaluate_compare(const Expression& node, Scope* scope) {
  Value left = evaluate(*node.parts[0], scope);
  for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
    Value right = evaluate(*node.parts[i + 1], scope);
    if (!compare(heap_, node.comparisons[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_conditional(const Expression& node, Scope* scope) {
  if (evaluate(*node.parts[0], scope).truthy()) return evaluate(*node.parts[1], scope);
  if (node.parts[2] != nullptr) return evaluate(*node.parts[2], scope);
  return Value::undefined("the inline if-expression evaluated to false and no else section was defined");
}

Value Interpreter::evaluate_slice(const Expression& node, Scope* scope) {
  const Value object = evaluate(*node.parts[0], scope);
  Value bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    bounds[i] = node.parts[i + 1] == nullptr ? Value::none() : evaluate(*node.parts[i + 1], scope);
  }
  return slice(heap_, object, bounds[0], bounds[1], bounds[2]);
}

}  // namespace steadfast::jinja
