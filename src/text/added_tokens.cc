// A trie of bytes, walked from each place whose byte begins a token.
#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace steadfast {
namespace {

// \w of the regex crate: UTS #18, Annex C.
constexpr std::string_view kWordCharacter = R"(\A[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}])";

std::size_t character_before(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

std::size_t space_begin(std::string_view text, std::size_t end, std::size_t limit) {
  while (end > limit) {
    const std::size_t before = character_before(text, end);
    if (before < limit || !is_white_space(utf8_step(text, before).code)) break;
    end = before;
  }
  return end;
}

std::size_t space_end(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const Utf8Step step = utf8_step(text, begin);
    if (!is_white_space(step.code)) break;
    begin += step.bytes;
  }
  return begin;
}

}  // namespace

Result<AddedTokens> AddedTokens::make(const std::vector<AddedToken>& tokens, const Normalizer& normalizer) {
  AddedTokens result;
  for (const AddedToken& token : tokens) {
    if (token.text.empty()) continue;
    if (token.text.size() > kMaxBytes) {
      return Status::error("added token {} has {} bytes of text; at most {} are supported", token.id, token.text.size(),
                           kMaxBytes);
    }
    const int index = static_cast<int>(result.tokens_.size());
    result.tokens_.push_back(token);
    std::string storage;
    result.insert(token.normalized ? result.normalized_ : result.raw_,
                  token.normalized ? normalizer.apply(token.text, storage) : std::string_view(token.text), index);
    if (token.single_word && !result.word_) {
      auto word = Regex::compile(kWordCharacter);
      if (!word) return word.status();
      result.word_ = std::move(*word);
    }
  }
  return result;
}

int AddedTokens::child_of(const Trie& trie, int node, unsigned char byte) {
  if (node == 0) return trie.first[byte];
  int child = trie.nodes[node].child;
  while (child >= 0 && trie.nodes[child].byte != byte) child = trie.nodes[child].sibling;
  return child;
}

void AddedTokens::insert(Trie& trie, std::string_view text, int token) {
  int node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    int child = child_of(trie, node, byte);
    if (child < 0) {
      child = static_cast<int>(trie.nodes.size());
      trie.nodes.push_back({-1, node == 0 ? -1 : trie.nodes[node].child, -1, byte});
      (node == 0 ? trie.first[byte] : trie.nodes[node].child) = child;
    }
    node = child;
  }
  if (trie.nodes[node].token < 0) trie.nodes[node].token = token;
}

bool AddedTokens::stands_alone(std::string_view text, std::size_t begin, std::size_t end) const {
  const Regex::Matcher word(*word_);
  if (begin > 0 && word.find(text.substr(character_before(text, begin)), 0)) return false;
  return end == text.size() || !word.find(text.substr(end), 0);
}

void AddedTokens::find(const Trie& trie, std::string_view text, std::vector<TextSegment>& segments) const {
  if (trie.nodes.size() == 1) {
    if (!text.empty()) segments.push_back({-1, text});
    return;
  }
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    int node = trie.first[static_cast<unsigned char>(text[at])];
    if (node < 0) {
      ++at;
      continue;
    }
    int index = -1;
    std::size_t end = at;
    for (std::size_t next = at + 1; node >= 0; ++next) {
      if (trie.nodes[node].token >= 0) {
        index = trie.nodes[node].token;
        end = next;
      }
      if (next == text.size()) break;
      node = child_of(trie, node, static_cast<unsigned char>(text[next]));
    }
    if (index < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[index];
    std::size_t begin = at;
    at = end;  // the reference goes on behind a match that it rejects, and inside white space that one took
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(space_begin(text, begin, std::min(begin, done)), done);
    if (token.rstrip) end = space_end(text, end);
    if (done < begin) segments.push_back({-1, text.substr(done, begin - done)});
    segments.push_back({token.id, {}});
    done = end;
  }
  if (done < text.size()) segments.push_back({-1, text.substr(done)});
}

}  // namespace steadfast
