// ExpressionParser of parser.h. From loose to tight: if/else, or, and, not, comparisons, + -, ~, * / // %, **, unary,
// then attributes, subscripts and calls, then filters and tests.
#include <algorithm>

#include "text/jinja/parser.h"

namespace steadfast::jinja {

ExpressionParser::Nested::Nested(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.nesting_ > kMaxNesting) {
    --parser_.nesting_;
    fail_at(parser_.current().line, "the template nests more than {} levels deep", kMaxNesting);
  }
}

Token ExpressionParser::take() {
  Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  take();
  return true;
}

bool ExpressionParser::skip_symbol(std::string_view symbol) {
  if (!is_symbol(symbol)) return false;
  take();
  return true;
}

void ExpressionParser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) fail_at(current().line, "expected '{}', got {}", symbol, describe(current()));
}

std::string ExpressionParser::expect_name() {
  if (current().type != TokenType::kName) fail_at(current().line, "expected a name, got {}", describe(current()));
  return take().text;
}

void ExpressionParser::fail_here(const std::string& message) const { throw Error(current().line, message); }

void ExpressionParser::measure(Expression& node) const {
  const auto include = [&](const ExpressionPtr& part) {
    if (part != nullptr) node.depth = std::max(node.depth, part->depth + 1);
  };
  for (const ExpressionPtr& part : node.parts) include(part);
  for (const ExpressionPtr& part : node.arguments.positional) include(part);
  for (const auto& [name, part] : node.arguments.named) include(part);
  include(node.arguments.more_positional);
  include(node.arguments.more_named);
  if (node.depth > 2 * kMaxNesting) {
    fail_at(node.line, "an expression nests more than {} levels deep: cut it into several with set", 2 * kMaxNesting);
  }
}

ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line, std::vector<ExpressionPtr> parts) const {
  auto node = std::make_unique<Expression>(Expression{.kind = kind, .line = line});
  node->parts = std::move(parts);
  measure(*node);
  return node;
}

ExpressionPtr ExpressionParser::pair(ExpressionKind kind, int line, ExpressionPtr left, ExpressionPtr right) const {
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(left));
  parts.push_back(std::move(right));
  return make(kind, line, std::move(parts));
}

bool ExpressionParser::at_tuple_end(TupleEnd end) const {
  const TokenType type = current().type;
  if (type == TokenType::kPrintEnd || type == TokenType::kBlockEnd || is_symbol(")")) return true;
  return (end == TupleEnd::kIn && is_name("in")) || (end == TupleEnd::kRecursive && is_name("recursive"));
}

ExpressionPtr ExpressionParser::tuple(bool with_condition, TupleEnd end, bool may_be_empty) {
  const int line = current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (!at_tuple_end(end)) {
    items.push_back(expression(with_condition));
    if (!skip_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items.front());
  if (items.empty() && !may_be_empty) fail_here("expected an expression, got " + describe(current()));
  return make(ExpressionKind::kTuple, line, std::move(items));
}

ExpressionPtr ExpressionParser::assignment_target(TupleEnd end, bool with_namespace) {
  const int line = current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (!at_tuple_end(end)) {
    const bool is_group = skip_symbol("(");
    ExpressionPtr item;
    if (is_group) {
      const Nested nested(*this);
      item = assignment_target(TupleEnd::kTag, false);
      expect_symbol(")");
    } else {
      item = primary(with_namespace);
      if (item->kind != ExpressionKind::kName && item->kind != ExpressionKind::kNamespaceAttribute) {
        fail_at(item->line, "only names can be assigned to");
      }
    }
    items.push_back(std::move(item));
    if (!skip_symbol(",")) break;
    is_tuple = true;
  }
  if (items.empty()) fail_here("expected a name to assign to, got " + describe(current()));
  return is_tuple ? make(ExpressionKind::kTuple, line, std::move(items)) : std::move(items.front());
}

ExpressionPtr ExpressionParser::expression(bool with_condition) {
  const Nested nested(*this);
  const int line = current().line;
  ExpressionPtr node = disjunction();
  while (with_condition && skip_name("if")) {
    std::vector<ExpressionPtr> parts;
    parts.push_back(disjunction());
    parts.push_back(std::move(node));
    parts.push_back(skip_name("else") ? expression() : nullptr);
    node = make(ExpressionKind::kConditional, line, std::move(parts));
  }
  return node;
}

ExpressionPtr ExpressionParser::disjunction() {
  ExpressionPtr left = conjunction();
  while (is_name("or")) {
    const int line = take().line;
    left = pair(ExpressionKind::kOr, line, std::move(left), conjunction());
  }
  return left;
}

ExpressionPtr ExpressionParser::conjunction() {
  ExpressionPtr left = negation();
  while (is_name("and")) {
    const int line = take().line;
    left = pair(ExpressionKind::kAnd, line, std::move(left), negation());
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  if (!is_name("not")) return comparison();
  const Nested nested(*this);
  const int line = take().line;
  std::vector<ExpressionPtr> parts;
  parts.push_back(negation());
  return make(ExpressionKind::kNot, line, std::move(parts));
}

bool ExpressionParser::take_comparison(Comparison& found) {
  constexpr std::pair<std::string_view, Comparison> kSymbols[] = {
      {"==", Comparison::kEqual},     {"!=", Comparison::kNotEqual}, {"<", Comparison::kLess},
      {"<=", Comparison::kLessEqual}, {">", Comparison::kGreater},   {">=", Comparison::kGreaterEqual}};
  for (const auto& [symbol, comparison] : kSymbols) {
    if (skip_symbol(symbol)) {
      found = comparison;
      return true;
    }
  }
  if (skip_name("in")) {
    found = Comparison::kIn;
    return true;
  }
  if (!is_name("not") || next_token().type != TokenType::kName || next_token().text != "in") return false;
  take();
  take();
  found = Comparison::kNotIn;
  return true;
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = current().line;
  ExpressionPtr left = sum();
  std::vector<Comparison> comparisons;
  std::vector<ExpressionPtr> parts;
  for (Comparison found{}; take_comparison(found);) {
    comparisons.push_back(found);
    parts.push_back(sum());
  }
  if (comparisons.empty()) return left;
  parts.insert(parts.begin(), std::move(left));
  ExpressionPtr node = make(ExpressionKind::kCompare, line, std::move(parts));
  node->comparisons = std::move(comparisons);
  return node;
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concatenation();
  while (is_symbol("+") || is_symbol("-")) {
    const Token symbol = take();
    left = pair(ExpressionKind::kBinary, symbol.line, std::move(left), concatenation());
    left->operation = symbol.text == "+" ? Operator::kAdd : Operator::kSubtract;
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  const int line = current().line;
  ExpressionPtr first = product();
  if (!is_symbol("~")) return first;
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(first));
  while (skip_symbol("~")) parts.push_back(product());
  return make(ExpressionKind::kConcat, line, std::move(parts));
}

ExpressionPtr ExpressionParser::product() {
  constexpr std::pair<std::string_view, Operator> kSymbols[] = {
      {"*", Operator::kMultiply}, {"/", Operator::kDivide}, {"//", Operator::kFloorDivide}, {"%", Operator::kModulo}};
  ExpressionPtr left = power();
  while (true) {
    const auto* found = std::find_if(std::begin(kSymbols), std::end(kSymbols),
                                     [&](const auto& entry) { return is_symbol(entry.first); });
    if (found == std::end(kSymbols)) return left;
    const int line = take().line;
    left = pair(ExpressionKind::kBinary, line, std::move(left), power());
    left->operation = found->second;
  }
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary(true);
  while (is_symbol("**")) {
    const int line = take().line;
    left = pair(ExpressionKind::kBinary, line, std::move(left), unary(true));
    left->operation = Operator::kPower;
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  ExpressionPtr node;
  if (is_symbol("-") || is_symbol("+")) {
    const Nested nested(*this);
    const Token sign = take();
    std::vector<ExpressionPtr> parts;
    parts.push_back(unary(false));
    node = make(sign.text == "-" ? ExpressionKind::kNegative : ExpressionKind::kPositive, sign.line, std::move(parts));
  } else {
    node = primary(false);
  }
  node = postfix(std::move(node));
  return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::name_or_constant(bool with_namespace) {
  const Token token = take();
  const auto constant = [&](Value value) {
    ExpressionPtr node = make(ExpressionKind::kConstant, token.line);
    node->value = std::move(value);
    return node;
  };
  if (token.text == "true" || token.text == "True") return constant(Value::boolean(true));
  if (token.text == "false" || token.text == "False") return constant(Value::boolean(false));
  if (token.text == "none" || token.text == "None") return constant(Value::none());
  if (with_namespace && skip_symbol(".")) {
    ExpressionPtr node = make(ExpressionKind::kNamespaceAttribute, token.line);
    node->name = token.text;
    node->value = Value::constant(expect_name());
    return node;
  }
  for (Statement* macro : macros_) {
    macro->uses_caller = macro->uses_caller || token.text == "caller";
    macro->uses_varargs = macro->uses_varargs || token.text == "varargs";
    macro->uses_kwargs = macro->uses_kwargs || token.text == "kwargs";
  }
  ExpressionPtr node = make(ExpressionKind::kName, token.line);
  node->name = token.text;
  return node;
}

ExpressionPtr ExpressionParser::primary(bool with_namespace) {
  const int line = current().line;
  if (current().type == TokenType::kName) return name_or_constant(with_namespace);
  if (current().type == TokenType::kLiteral) {
    ExpressionPtr node = make(ExpressionKind::kConstant, line);
    node->value = take().value;
    if (!node->value.is_text()) return node;
    std::string text = node->value.as_text();
    while (current().type == TokenType::kLiteral && current().value.is_text()) text += take().value.as_text();
    node->value = Value::constant(std::move(text));
    return node;
  }
  if (skip_symbol("(")) {
    ExpressionPtr node = tuple(true, TupleEnd::kTag, true);
    expect_symbol(")");
    return node;
  }
  if (is_symbol("[")) return list();
  if (is_symbol("{")) return dict();
  fail_here("unexpected " + describe(current()));
}

ExpressionPtr ExpressionParser::list() {
  const int line = take().line;
  std::vector<ExpressionPtr> items;
  while (!is_symbol("]")) {
    items.push_back(expression());
    if (!skip_symbol(",")) break;
  }
  expect_symbol("]");
  return make(ExpressionKind::kList, line, std::move(items));
}

ExpressionPtr ExpressionParser::dict() {
  const int line = take().line;
  std::vector<ExpressionPtr> items;
  while (!is_symbol("}")) {
    items.push_back(expression());
    expect_symbol(":");
    items.push_back(expression());
    if (!skip_symbol(",")) break;
  }
  expect_symbol("}");
  return make(ExpressionKind::kDict, line, std::move(items));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  while (true) {
    if (is_symbol(".")) {
      node = attribute(std::move(node));
    } else if (is_symbol("[")) {
      node = subscript(std::move(node));
    } else if (is_symbol("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (is_symbol("|")) {
      node = filters(std::move(node), false);
    } else if (is_name("is")) {
      node = test(std::move(node));
    } else if (is_symbol("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::attribute(ExpressionPtr node) {
  const int line = take().line;
  if (current().type == TokenType::kLiteral && current().value.is_int()) {
    ExpressionPtr key = make(ExpressionKind::kConstant, line);
    key->value = take().value;
    return pair(ExpressionKind::kItem, line, std::move(node), std::move(key));
  }
  if (current().type != TokenType::kName)
    fail_here("expected a name or a number after '.', got " + describe(current()));
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(node));
  ExpressionPtr result = make(ExpressionKind::kAttribute, line, std::move(parts));
  result->name = take().text;
  return result;
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr node) {
  const int line = take().line;
  node = subscript_part(std::move(node));
  if (is_symbol(",")) fail_at(line, "a subscript of several parts is not supported");
  expect_symbol("]");
  return node;
}

ExpressionPtr ExpressionParser::subscript_part(ExpressionPtr node) {
  const int line = current().line;
  ExpressionPtr bounds[3];
  if (!is_symbol(":")) {
    bounds[0] = expression();
    if (!is_symbol(":")) return pair(ExpressionKind::kItem, line, std::move(node), std::move(bounds[0]));
  }
  for (int i = 1; i < 3 && skip_symbol(":"); ++i) {
    if (!is_symbol(":") && !is_symbol("]") && !is_symbol(",")) bounds[i] = expression();
  }
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(node));
  for (ExpressionPtr& bound : bounds) parts.push_back(std::move(bound));
  return make(ExpressionKind::kSlice, line, std::move(parts));
}

CallArguments ExpressionParser::call_arguments() {
  const int line = current().line;
  CallArguments arguments;
  const auto ensure = [&](bool is_right) {
    if (!is_right) fail_at(line, "the arguments of a call are in the wrong order");
  };
  expect_symbol("(");
  while (!is_symbol(")")) {
    if (skip_symbol("*")) {
      ensure(arguments.more_positional == nullptr && arguments.more_named == nullptr);
      arguments.more_positional = expression();
    } else if (skip_symbol("**")) {
      ensure(arguments.more_named == nullptr);
      arguments.more_named = expression();
    } else if (current().type == TokenType::kName && next_token().type == TokenType::kSymbol &&
               next_token().text == "=") {
      ensure(arguments.more_named == nullptr);
      std::string name = take().text;
      take();
      const bool is_known = std::any_of(arguments.named.begin(), arguments.named.end(),
                                        [&](const auto& entry) { return entry.first == name; });
      if (is_known) fail_at(line, "the argument '{}' is given twice", name);
      arguments.named.emplace_back(std::move(name), expression());
    } else {
      ensure(arguments.more_positional == nullptr && arguments.more_named == nullptr && arguments.named.empty());
      arguments.positional.push_back(expression());
    }
    if (!is_symbol(")")) expect_symbol(",");
  }
  expect_symbol(")");
  return arguments;
}

ExpressionPtr ExpressionParser::call(ExpressionPtr node) {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(node));
  ExpressionPtr result = make(ExpressionKind::kCall, line, std::move(parts));
  result->arguments = call_arguments();
  measure(*result);
  return result;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr subject, bool starts_with_name) {
  while (starts_with_name || skip_symbol("|")) {
    starts_with_name = false;
    const int line = current().line;
    std::string name = expect_name();
    while (skip_symbol(".")) name += "." + expect_name();
    std::vector<ExpressionPtr> parts;
    parts.push_back(std::move(subject));
    subject = make(ExpressionKind::kFilter, line, std::move(parts));
    subject->name = std::move(name);
    if (is_symbol("(")) subject->arguments = call_arguments();
    measure(*subject);
  }
  return subject;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr node) {
  const int line = take().line;
  const bool is_negated = skip_name("not");
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(node));
  ExpressionPtr result = make(ExpressionKind::kTest, line, std::move(parts));
  result->name = expect_name();
  while (skip_symbol(".")) result->name += "." + expect_name();
  const bool is_value =
      current().type == TokenType::kName || current().type == TokenType::kLiteral || is_symbol("[") || is_symbol("{");
  if (is_symbol("(")) {
    result->arguments = call_arguments();
  } else if (is_value && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) fail_here("tests with 'is' cannot be chained");
    result->arguments.positional.push_back(postfix(primary(false)));
  }
  measure(*result);
  if (!is_negated) return result;
  std::vector<ExpressionPtr> negated;
  negated.push_back(std::move(result));
  return make(ExpressionKind::kNot, line, std::move(negated));
}

}  // namespace steadfast::jinja
