// The stop string that is complete first wins (of those complete at one byte, the longest), wherever the tokens'
// borders lie; a suffix that may still become one is held back.
#include "engine/reply_writer.h"

#include <algorithm>

namespace steadfast {

ReplyWriter::ReplyWriter(const Tokenizer* tokenizer, std::vector<std::string> stop) : stop_(std::move(stop)) {
  std::erase_if(stop_, [](const std::string& s) { return s.empty(); });
  if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer);
}

std::string ReplyWriter::push(TokenId id) {
  if (!detokenizer_ || matched_) return "";
  held_ += detokenizer_->push(id);
  return settle(false);
}

std::string ReplyWriter::finish() {
  if (!detokenizer_ || matched_) return "";
  held_ += detokenizer_->finish();
  return settle(true);
}

std::string ReplyWriter::settle(bool last) {
  std::size_t first = 0, end = std::string::npos;
  for (const auto& stop : stop_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    if (at + stop.size() < end || (at + stop.size() == end && at < first)) {
      first = at;
      end = at + stop.size();
      matched_ = stop;
    }
  }
  if (matched_) {
    std::string text = held_.substr(0, first);
    held_.clear();
    return text;
  }
  std::size_t keep = 0;  // length of the longest suffix that begins a stop string
  if (!last) {
    for (const auto& stop : stop_) {
      for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length)
        if (held_.compare(held_.size() - length, length, stop, 0, length) == 0) keep = length;
    }
    // A character cut by the hold stays whole: move back to its first byte.
    while (keep < held_.size() && keep > 0 && (static_cast<unsigned char>(held_[held_.size() - keep]) & 0xC0u) == 0x80u)
      ++keep;
  }
  std::string text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return text;
}

}  // namespace steadfast
