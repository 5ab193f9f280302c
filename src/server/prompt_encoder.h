// Messages to ids such that a client's text never becomes a control token, while what the template writes does.
//
// How: in every string of the request a private-use mark is put after each character that begins a control token's text
// and before each that ends one. The template renders the marked strings; the marks are then taken out again and tell
// where the client's characters lie. A control token's text with a mark inside was written by the client, at least in
// part, and is encoded as plain text; every other one is the template's own. Text without such a token is encoded
// exactly as the tokenizer encodes it, in one piece.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "text/tokenizer.h"

namespace steadfast {

struct EncodedPrompt {
  std::string text;
  std::vector<TokenId> ids;
  bool clock_read = false;  // the template asked for the time
};

class PromptEncoder {
 public:
  // Both must outlive the encoder.
  PromptEncoder(const Tokenizer& tokenizer, const ChatTemplate& chat_template);

  // input.now must be set where the template may print the time: it is rendered twice. Errors: what it raises.
  Outcome<EncodedPrompt> encode(const TemplateInput& input) const;

 private:
  struct Control {
    std::string text;
    bool special;  // else a tag, such as <think>, that system and assistant texts may write
  };
  struct Match {
    std::size_t begin, end;
    bool marked;  // has the client's characters
  };

  bool needs_marks(const Json& value) const;
  std::string marked(const std::string& text, std::string_view mark, bool tags_too) const;
  void mark_all(Json& value, std::string_view mark, bool tags_too) const;
  TemplateInput marked_input(const TemplateInput& input, std::string_view mark) const;
  std::vector<Match> matches(std::string_view text, std::span<const std::size_t> marks) const;
  std::vector<TokenId> encode_guarded(std::string_view text, std::span<const Match> found) const;
  std::size_t count_controls(std::span<const TokenId> ids) const;
  Outcome<EncodedPrompt> encode_marked(const TemplateInput& input, EncodedPrompt plain, std::string_view mark) const;

  const Tokenizer& tokenizer_;
  const ChatTemplate& template_;
  std::vector<Control> controls_;          // longest first
  std::vector<std::string> first_, last_;  // the characters that begin and end them
  std::array<bool, 256> edge_{};           // bytes that begin one of those characters
  std::vector<bool> is_control_;           // by id
};

}  // namespace steadfast
