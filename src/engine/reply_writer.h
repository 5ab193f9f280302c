// Turns a stream's ids into pieces of text: whole characters only, nothing of a stop string, nothing of an end id.
#pragma once

#include <optional>

#include "engine/reply.h"

namespace steadfast {

class ReplyWriter {
 public:
  // tokenizer may be nullptr: pieces then have ids and no text.
  ReplyWriter(const Tokenizer* tokenizer, std::vector<std::string> stop);

  // Text that is now certain. matched() tells whether a stop string ended the reply.
  std::string push(TokenId id);
  std::string finish();
  const std::optional<std::string>& matched() const { return matched_; }

 private:
  std::string settle(bool last);
  std::optional<StreamingDetokenizer> detokenizer_;
  std::vector<std::string> stop_;
  std::string held_;
  std::optional<std::string> matched_;
};

}  // namespace steadfast
