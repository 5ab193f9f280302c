// Interpreter: filters, tests, calls of functions, macros and recursive loops.
#include <algorithm>

#include "text/jinja/builtins.h"
#include "text/jinja/deeper.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/printing.h"

namespace steadfast::jinja {

Value Interpreter::call_builtin(Builtin builtin, std::string_view name, const Value& self, Arguments arguments) {
  // What a builtin does to a text is linear in it.
  const auto spend_text = [&](const Value& value) {
    if (value.is_text()) heap_.spend(static_cast<std::int64_t>(value.as_text().size() / 16));
  };
  spend_text(self);
  for (const Value& value : arguments.positional) spend_text(value);
  Call call{*this, name, self, std::move(arguments)};
  return builtin(call);
}

Value Interpreter::filter(std::string_view name, const Value& value, Arguments arguments) {
  const Builtin builtin = find_filter(name);
  if (builtin == nullptr) fail("there is no filter named '{}'", name);
  return call_builtin(builtin, name, value, std::move(arguments));
}

bool Interpreter::test(std::string_view name, const Value& value, Arguments arguments) {
  const Builtin builtin = find_test(name);
  if (builtin == nullptr) fail("there is no test named '{}'", name);
  return call_builtin(builtin, name, value, std::move(arguments)).truthy();
}

Value Interpreter::call(const Value& callee, Arguments arguments) {
  if (callee.is_undefined()) fail_undefined(callee);
  Object* object = callee.object();
  if (object != nullptr) {
    switch (object->type) {
      case ObjectType::kFunction: {
        const auto& function = static_cast<const Function&>(*object);
        return call_builtin(function.builtin, function.name, function.self, std::move(arguments));
      }
      case ObjectType::kMacro:
        return call_macro(static_cast<const Macro&>(*object), std::move(arguments));
      case ObjectType::kLoop:
        return call_loop(static_cast<Loop&>(*object), std::move(arguments));
      case ObjectType::kJoiner: {
        auto& joiner = static_cast<Joiner&>(*object);
        if (joiner.used) return joiner.separator;
        joiner.used = true;
        return heap_.text("");
      }
      default:
        break;
    }
  }
  fail("'{}' object is not callable", callee.type_name());
}

Value Interpreter::call_macro(const Macro& macro, Arguments arguments) {
  const Deeper deeper(*this, macro.definition->line);
  Scope* scope = heap_.open_scope(macro.scope);
  std::string text;
  std::string* outer = out_;
  out_ = &text;
  bind_parameters(*macro.definition, arguments, scope);
  static_cast<void>(execute(macro.definition->bodies[0], scope));
  heap_.close_scope(scope);
  out_ = outer;
  return heap_.text(std::move(text));
}

void Interpreter::bind_parameters(const Statement& macro, Arguments& arguments, Scope* scope) {
  const std::string shown = macro.name.empty() ? "the call block" : "macro '" + macro.name + "'";
  std::vector<std::pair<std::string, Value>>& named = arguments.named;
  const auto take = [&](std::string_view name) -> std::optional<Value> {
    const auto found = std::find_if(named.begin(), named.end(), [&](const auto& entry) { return entry.first == name; });
    if (found == named.end()) return std::nullopt;
    Value value = std::move(found->second);
    named.erase(found);
    return value;
  };
  const std::size_t count = macro.parameters.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = macro.parameters[i];
    if (i < arguments.positional.size()) {
      scope->set(parameter.name, arguments.positional[i]);
    } else if (std::optional<Value> value = take(parameter.name)) {
      scope->set(parameter.name, std::move(*value));
    } else if (parameter.fallback != nullptr) {
      scope->set(parameter.name, evaluate(*parameter.fallback, scope));
    } else {
      scope->set(parameter.name, Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name)));
    }
  }
  if (macro.uses_caller && scope->find_here("caller") == nullptr) {
    scope->set("caller", take("caller").value_or(Value::undefined("No caller defined")));
  }
  if (macro.uses_kwargs) {
    Entries entries;
    for (auto& [name, value] : named) entries.emplace_back(heap_.text(name), std::move(value));
    scope->set("kwargs", heap_.dict(std::move(entries)));
  } else if (!named.empty()) {
    fail("{} takes no keyword argument '{}'", shown, named.front().first);
  }
  auto& positional = arguments.positional;
  if (macro.uses_varargs) {
    const auto first = positional.begin() + static_cast<std::ptrdiff_t>(std::min(count, positional.size()));
    scope->set("varargs", heap_.tuple({first, positional.end()}));
  } else if (positional.size() > count) {
    fail("{} takes not more than {} argument(s)", shown, count);
  }
}

Value Interpreter::call_loop(Loop& state, Arguments arguments) {
  if (state.recursive_statement == nullptr) {
    fail("the loop is called, but it is not 'recursive'");
  }
  if (arguments.positional.size() != 1 || !arguments.named.empty()) fail("loop() takes one argument");
  const Deeper deeper(*this, state.recursive_statement->line);
  std::string text;
  std::string* outer = out_;
  out_ = &text;
  static_cast<void>(
      loop(*state.recursive_statement, state.scope, items_of(heap_, arguments.positional[0]), state.depth + 1));
  out_ = outer;
  return heap_.text(std::move(text));
}

}  // namespace steadfast::jinja
