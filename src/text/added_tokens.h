// Added tokens: the texts that become one id before anything is cut or merged. Source: model-spec 6.6;
// huggingface/tokenizers src/tokenizer/added_vocabulary.rs. Leftmost, then longest.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalizer.h"
#include "text/regex.h"
#include "text/tokenizer.h"

namespace steadfast {

struct AddedToken {
  TokenId id = -1;
  std::string text;
  bool special = false;      // dropped by decode(skip_special)
  bool single_word = false;  // no word character beside it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and behind it
  bool normalized = false;   // looked for in the normalised text
};

// An added token, or (id -1) a stretch of text between them.
struct TextSegment {
  TokenId id;
  std::string_view text;  // empty for a token
};

class AddedTokens {
 public:
  static constexpr std::size_t kMaxBytes = 1024;  // of one token: bounds the time to look for it at each place

  static Result<AddedTokens> make(const std::vector<AddedToken>& tokens, const Normalizer& normalizer);

  // Appends the segments of well-formed UTF-8 in order.
  void find_raw(std::string_view text, std::vector<TextSegment>& segments) const { find(raw_, text, segments); }
  void find_normalized(std::string_view text, std::vector<TextSegment>& segments) const {
    find(normalized_, text, segments);
  }

 private:
  struct Node {
    int child = -1, sibling = -1;
    int token = -1;  // index into tokens_: one ends here
    unsigned char byte = 0;
  };
  struct Trie {
    std::vector<Node> nodes = std::vector<Node>(1);      // the root
    std::vector<int> first = std::vector<int>(256, -1);  // child of the root by byte
  };

  void insert(Trie& trie, std::string_view text, int token);
  static int child_of(const Trie& trie, int node, unsigned char byte);
  void find(const Trie& trie, std::string_view text, std::vector<TextSegment>& segments) const;
  bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) const;

  std::vector<AddedToken> tokens_;
  Trie raw_, normalized_;
  std::optional<Regex> word_;  // one word character
};

}  // namespace steadfast
