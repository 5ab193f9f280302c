// Template text to syntax tree: Jinja's grammar with loop controls and {% generation %}, without what needs other files
// (extends, block, include, import). Nesting is bounded, so neither parsing nor dropping a tree can exhaust the stack.
#pragma once

#include <string_view>

#include "text/jinja/lexer.h"
#include "text/jinja/statement.h"

namespace steadfast::jinja {

// Errors: Error with the line.
Body parse(std::string_view source);

// Reads expressions off a token list.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  // Where the expressions of a tuple without parentheses end.
  enum class TupleEnd { kTag, kIn, kRecursive };

  const Token& current() const { return tokens_[at_]; }
  const Token& next_token() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token take();
  bool is_name(std::string_view name) const { return is(TokenType::kName, name); }
  bool is_symbol(std::string_view symbol) const { return is(TokenType::kSymbol, symbol); }
  bool skip_name(std::string_view name);
  bool skip_symbol(std::string_view symbol);
  void expect_symbol(std::string_view symbol);
  std::string expect_name();
  [[noreturn]] void fail_here(const std::string& message) const;

  // `a, b` is a tuple. An empty one needs `may_be_empty`.
  ExpressionPtr tuple(bool with_condition, TupleEnd end = TupleEnd::kTag, bool may_be_empty = false);
  ExpressionPtr expression(bool with_condition = true);
  // Names, tuples of names and (for set) name.attribute.
  ExpressionPtr assignment_target(TupleEnd end, bool with_namespace);
  ExpressionPtr filters(ExpressionPtr subject, bool starts_with_name);

  // The macros whose bodies are being read; their uses_* are filled in by the names met.
  std::vector<Statement*> macros_;

  // Counts one more level of nesting while it lives.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser);
    ~Nested() { --parser_.nesting_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  bool is(TokenType type, std::string_view text) const { return current().type == type && current().text == text; }
  ExpressionPtr make(ExpressionKind kind, int line, std::vector<ExpressionPtr> parts = {}) const;
  ExpressionPtr pair(ExpressionKind kind, int line, ExpressionPtr left, ExpressionPtr right) const;
  void measure(Expression& node) const;
  bool at_tuple_end(TupleEnd end) const;
  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  bool take_comparison(Comparison& found);
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary(bool with_namespace);
  ExpressionPtr name_or_constant(bool with_namespace);
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filters_and_tests(ExpressionPtr node);
  ExpressionPtr attribute(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr subscript_part(ExpressionPtr node);
  ExpressionPtr call(ExpressionPtr node);
  ExpressionPtr test(ExpressionPtr node);
  CallArguments call_arguments();

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace steadfast::jinja
