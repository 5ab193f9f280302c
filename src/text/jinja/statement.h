// The syntax tree of a template. Nodes never change after parsing, so a template may be rendered by many threads.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/operators.h"

namespace steadfast::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<Statement>;

enum class ExpressionKind : std::uint8_t {
  kConstant,            // value
  kName,                // name
  kList,                // parts: the items
  kTuple,               // parts: the items
  kDict,                // parts: key, value, key, value, ...
  kAttribute,           // parts[0].name
  kItem,                // parts[0][parts[1]]
  kSlice,               // parts[0][parts[1]:parts[2]:parts[3]]; the bounds may be null
  kCall,                // parts[0](arguments)
  kFilter,              // parts[0] | name(arguments); parts[0] is null at the head of a block's filter
  kTest,                // parts[0] is name(arguments)
  kNot,                 // not parts[0]
  kNegative,            // -parts[0]
  kPositive,            // +parts[0]
  kBinary,              // parts[0] operation parts[1]
  kConcat,              // parts[0] ~ parts[1] ~ ...
  kCompare,             // parts[0] comparisons[0] parts[1] comparisons[1] parts[2] ...
  kAnd,                 // parts[0] and parts[1]
  kOr,                  // parts[0] or parts[1]
  kConditional,         // parts[1] if parts[0] else parts[2]; parts[2] may be null
  kNamespaceAttribute,  // name.attribute as the target of an assignment: name, and the attribute in value
};

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr more_positional;  // *x
  ExpressionPtr more_named;       // **x
};

struct Expression {
  ExpressionKind kind;
  int line;
  int depth = 1;  // of the tree below
  std::string name = {};
  Value value = {};
  std::vector<ExpressionPtr> parts = {};
  CallArguments arguments = {};
  Operator operation = Operator::kAdd;
  std::vector<Comparison> comparisons = {};
};

enum class StatementKind : std::uint8_t {
  kText,         // text
  kPrint,        // {{ expressions[0] }}; {% print a, b %} prints all
  kIf,           // expressions[i] chooses bodies[i]; one more body is the else
  kFor,          // for target in expressions[0] (if expressions[1], may be null): bodies[0], else bodies[1]
  kSet,          // target = expressions[0]
  kSetBlock,     // target = text of bodies[0], through the filters of expressions[0] (may be null)
  kMacro,        // name, parameters, bodies[0]
  kCallBlock,    // the call expressions[0] with bodies[0] as `caller`, which takes parameters
  kFilterBlock,  // text of bodies[0] through the filters of expressions[0]
  kWith,         // targets in expressions (even: target, odd: value), bodies[0]
  kScope,        // bodies[0], its names its own ({% generation %})
  kBreak,
  kContinue,
};

struct Parameter {
  std::string name;
  ExpressionPtr fallback;  // null: none
};

struct Statement {
  StatementKind kind;
  int line;
  std::string text = {};
  std::string name = {};
  ExpressionPtr target = {};
  std::vector<ExpressionPtr> expressions = {};
  std::vector<Body> bodies = {};
  std::vector<Parameter> parameters = {};
  bool is_recursive = false;
  // Macros: which of the special names their body reads.
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};

}  // namespace steadfast::jinja
