// A template's text cut into tokens, with Jinja's rules of white space for trim_blocks and lstrip_blocks both on:
// `-` strips all white space beside a tag, a line that holds only a block tag leaves nothing behind, `+` keeps it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace steadfast::jinja {

enum class TokenType : std::uint8_t {
  kData,
  kBlockBegin,
  kBlockEnd,
  kPrintBegin,
  kPrintEnd,
  kName,
  kLiteral,
  kSymbol,
  kEnd
};

struct Token {
  TokenType type;
  int line;
  std::string text;  // data, name or symbol
  Value value = {};  // kLiteral: a string, an integer or a float
};

// Errors: Error with the line. The last token is kEnd.
std::vector<Token> tokenize(std::string_view source);

// How errors name a token.
std::string describe(const Token& token);

}  // namespace steadfast::jinja
