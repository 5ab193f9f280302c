// What a tokenizer is made of, and the one builder behind tokenizer.json and GGUF. Private to src/text.
// The builder trusts nothing: ids, texts, merges and counts come straight from a file.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace steadfast {

struct TokenizerSpec {
  struct Token {
    std::string text;
    TokenId id;
  };
  std::vector<Token> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // texts, lowest rank first
  std::vector<AddedToken> added;                            // may repeat a token of the vocabulary, with the same id
  std::vector<Token> unused;                                // printed by token_text, never made from text
  std::string unknown;                                      // empty: none
  bool fuse_unknown = false;
  bool ignore_merges = false;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
};

struct TokenEntry {
  std::string text;   // as the vocabulary writes it
  std::string bytes;  // what it stands for
  bool known = false;
  bool special = false;
};

struct Tokenizer::Impl {
  static Result<std::unique_ptr<Impl>> build(TokenizerSpec spec);

  // text is well-formed UTF-8.
  void encode_text(std::string_view text, const EncodeOptions& options, std::vector<TokenId>& ids) const;

  std::vector<TokenEntry> tokens;  // by id
  Bpe bpe;                         // looks into `tokens`
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  AddedTokens added;
  std::unordered_map<std::string, TokenId> added_ids;
};

}  // namespace steadfast
