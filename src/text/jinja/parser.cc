// Statements: the parser of everything between {% and %}.
#include "text/jinja/parser.h"

#include <algorithm>
#include <initializer_list>

namespace steadfast::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body run() {
    Body body = statements({});
    if (current().type != TokenType::kEnd) fail_here("unexpected " + describe(current()));
    return body;
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Statements up to a tag of `ends`, whose name becomes the current token; to the template's end where there are none.
  Body statements(Ends ends) {
    const Nested nested(*this);
    Body body;
    while (current().type != TokenType::kEnd) {
      const Token token = take();
      if (token.type == TokenType::kData) {
        body.push_back({.kind = StatementKind::kText, .line = token.line, .text = token.text});
      } else if (token.type == TokenType::kPrintBegin) {
        Statement print{.kind = StatementKind::kPrint, .line = token.line};
        print.expressions.push_back(tuple(true));
        expect_end(TokenType::kPrintEnd, "}}");
        body.push_back(std::move(print));
      } else {
        if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return is_name(end); })) return body;
        body.push_back(statement(ends));
        expect_end(TokenType::kBlockEnd, "%}");
      }
    }
    if (ends.size() != 0) fail_here(fmt::format("the template ends, but '{{% {} %}}' is missing", *(ends.end() - 1)));
    return body;
  }

  void expect_end(TokenType type, std::string_view mark) {
    if (current().type != type) fail_at(current().line, "expected '{}', got {}", mark, describe(current()));
    take();
  }

  // The body of a block whose opening tag is read up to its end; leaves the closing tag's name current.
  Body body(Ends ends) {
    skip_symbol(":");
    expect_end(TokenType::kBlockEnd, "%}");
    return statements(ends);
  }

  // The same where only one tag may close it, which is taken.
  Body whole_body(std::string_view end) {
    Body result = body({end});
    take();
    return result;
  }

  Statement statement(Ends ends) {
    if (current().type != TokenType::kName) fail_here("expected the name of a statement, got " + describe(current()));
    const Token tag = take();
    if (tag.text == "set") return set(tag.line);
    if (tag.text == "if") return conditional(tag.line);
    if (tag.text == "for") return loop(tag.line);
    if (tag.text == "macro") return macro(tag.line);
    if (tag.text == "call") return call_block(tag.line);
    if (tag.text == "filter") return filter_block(tag.line);
    if (tag.text == "with") return with(tag.line);
    if (tag.text == "print") return print(tag.line);
    if (tag.text == "generation") {
      Statement scope{.kind = StatementKind::kScope, .line = tag.line};
      scope.bodies.push_back(body_outside_loop("endgeneration"));
      return scope;
    }
    if (tag.text == "break" || tag.text == "continue") {
      if (loops_ == 0) fail_at(tag.line, "'{}' is outside of a loop", tag.text);
      return {.kind = tag.text == "break" ? StatementKind::kBreak : StatementKind::kContinue, .line = tag.line};
    }
    fail_unknown(tag, ends);
  }

  [[noreturn]] static void fail_unknown(const Token& tag, Ends ends) {
    constexpr std::string_view kRefused[] = {"extends", "block",      "include", "import",
                                             "from",    "autoescape", "do",      "trans"};
    if (std::find(std::begin(kRefused), std::end(kRefused), tag.text) != std::end(kRefused)) {
      fail_at(tag.line, "the statement '{}' is not supported", tag.text);
    }
    if (ends.size() == 0) fail_at(tag.line, "unknown statement '{}'", tag.text);
    fail_at(tag.line, "unknown statement '{}' (looking for '{}')", tag.text, *(ends.end() - 1));
  }

  // A body whose break and continue may not reach the loops around it.
  Body body_outside_loop(std::string_view end) {
    const int loops = loops_;
    loops_ = 0;
    Body result = whole_body(end);
    loops_ = loops;
    return result;
  }

  Statement set(int line) {
    Statement node{.kind = StatementKind::kSet, .line = line};
    node.target = assignment_target(TupleEnd::kTag, true);
    if (skip_symbol("=")) {
      node.expressions.push_back(tuple(true));
      return node;
    }
    node.kind = StatementKind::kSetBlock;
    node.expressions.push_back(filters(nullptr, false));
    node.bodies.push_back(whole_body("endset"));
    return node;
  }

  Statement conditional(int line) {
    Statement node{.kind = StatementKind::kIf, .line = line};
    while (true) {
      node.expressions.push_back(tuple(false));
      node.bodies.push_back(body({"elif", "else", "endif"}));
      const Token tag = take();
      if (tag.text == "elif") continue;
      if (tag.text == "else") node.bodies.push_back(whole_body("endif"));
      return node;
    }
  }

  Statement loop(int line) {
    Statement node{.kind = StatementKind::kFor, .line = line};
    node.target = assignment_target(TupleEnd::kIn, false);
    if (!skip_name("in")) fail_here("expected 'in', got " + describe(current()));
    node.expressions.push_back(tuple(false, TupleEnd::kRecursive));
    node.expressions.push_back(skip_name("if") ? expression() : nullptr);
    node.is_recursive = skip_name("recursive");
    ++loops_;
    node.bodies.push_back(body({"else", "endfor"}));
    --loops_;
    if (take().text == "else") node.bodies.push_back(whole_body("endfor"));
    return node;
  }

  std::vector<Parameter> parameters() {
    std::vector<Parameter> result;
    expect_symbol("(");
    while (!is_symbol(")")) {
      if (!result.empty()) expect_symbol(",");
      Parameter parameter{.name = expect_name(), .fallback = nullptr};
      if (skip_symbol("=")) {
        parameter.fallback = expression();
      } else if (!result.empty() && result.back().fallback != nullptr) {
        fail_here("a parameter without a default follows one with a default");
      }
      result.push_back(std::move(parameter));
    }
    expect_symbol(")");
    return result;
  }

  void macro_body(Statement& node, std::string_view end) {
    macros_.push_back(&node);
    node.bodies.push_back(body_outside_loop(end));
    macros_.pop_back();
  }

  Statement macro(int line) {
    Statement node{.kind = StatementKind::kMacro, .line = line, .name = expect_name()};
    node.parameters = parameters();
    macro_body(node, "endmacro");
    return node;
  }

  Statement call_block(int line) {
    Statement node{.kind = StatementKind::kCallBlock, .line = line};
    if (is_symbol("(")) node.parameters = parameters();
    node.expressions.push_back(expression());
    if (node.expressions[0]->kind != ExpressionKind::kCall) fail_at(line, "'call' needs a call of a macro");
    macro_body(node, "endcall");
    return node;
  }

  Statement filter_block(int line) {
    Statement node{.kind = StatementKind::kFilterBlock, .line = line};
    node.expressions.push_back(filters(nullptr, true));
    node.bodies.push_back(whole_body("endfilter"));
    return node;
  }

  Statement with(int line) {
    Statement node{.kind = StatementKind::kWith, .line = line};
    while (current().type != TokenType::kBlockEnd) {
      if (!node.expressions.empty()) expect_symbol(",");
      node.expressions.push_back(assignment_target(TupleEnd::kTag, false));
      expect_symbol("=");
      node.expressions.push_back(expression());
    }
    node.bodies.push_back(whole_body("endwith"));
    return node;
  }

  Statement print(int line) {
    Statement node{.kind = StatementKind::kPrint, .line = line};
    while (current().type != TokenType::kBlockEnd) {
      if (!node.expressions.empty()) expect_symbol(",");
      node.expressions.push_back(expression());
    }
    return node;
  }

  int loops_ = 0;  // the loops around the current place, inside the innermost macro
};

}  // namespace

Body parse(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) fail_at(1, "the template is larger than {} bytes", kMaxTemplateBytes);
  return Parser(tokenize(source)).run();
}

}  // namespace steadfast::jinja
