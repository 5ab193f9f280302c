// From what a file says to a tokenizer: every token has one id and every id one text, merges name known tokens.
#include <algorithm>

#include "text/byte_alphabet.h"
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

namespace steadfast {
namespace {

// Ids may have holes, but not so many that a small file makes a large table.
constexpr std::size_t kMaxHoles = std::size_t{1} << 18;

using Ids = std::unordered_map<std::string_view, TokenId>;  // by text; looks into the table

std::string shown(std::string_view text) {
  const std::string start = repaired_utf8(text.substr(0, 80));
  return text.size() > 80 ? start + "..." : start;
}

Result<std::vector<TokenEntry>> empty_table(const TokenizerSpec& spec) {
  const std::size_t count = spec.vocabulary.size() + spec.added.size() + spec.unused.size();
  TokenId largest = -1;
  const auto check = [&](TokenId id, std::string_view text) {
    if (id < 0 || static_cast<std::size_t>(id) >= count + kMaxHoles) {
      return Status::error("token \"{}\" has id {}, which a vocabulary of {} tokens cannot have", shown(text), id,
                           count);
    }
    if (valid_utf8_prefix(text) != text.size()) return Status::error("token {} is not valid UTF-8", id);
    largest = std::max(largest, id);
    return Status::ok();
  };
  for (const auto* tokens : {&spec.vocabulary, &spec.unused}) {
    for (const auto& token : *tokens) {
      if (auto status = check(token.id, token.text); !status) return status;
    }
  }
  for (const auto& token : spec.added) {
    if (auto status = check(token.id, token.text); !status) return status;
  }
  if (spec.vocabulary.empty()) return Status::error("the vocabulary is empty");
  return std::vector<TokenEntry>(static_cast<std::size_t>(largest) + 1);
}

Status place(std::vector<TokenEntry>& table, Ids* ids, std::string text, TokenId id) {
  TokenEntry& entry = table[id];
  if (entry.known) {
    return Status::error("tokens \"{}\" and \"{}\" have the same id {}", shown(entry.text), shown(text), id);
  }
  entry = {std::move(text), {}, true, false};
  entry.bytes = alphabet_to_bytes(entry.text).value_or(entry.text);
  if (ids == nullptr) return Status::ok();
  const auto [other, is_new] = ids->emplace(entry.text, id);
  if (!is_new) return Status::error("token \"{}\" has two ids, {} and {}", shown(entry.text), other->second, id);
  return Status::ok();
}

Status place_added(std::vector<TokenEntry>& table, Ids& ids, const AddedToken& token) {
  const auto same = ids.find(token.text);
  if (same == ids.end()) {
    if (auto status = place(table, &ids, token.text, token.id); !status) return status;
    // Its text is literal. (The reference reads it in the byte alphabet, which turns an "é" into a broken byte.)
    table[token.id].bytes = token.text;
  } else if (same->second != token.id) {
    return Status::error("added token \"{}\" has id {}, but the vocabulary gives it {}", shown(token.text), token.id,
                         same->second);
  }
  table[token.id].special = token.special;
  return Status::ok();
}

Result<std::vector<BpeMerge>> resolve_merges(const TokenizerSpec& spec, const Ids& ids) {
  if (spec.merges.size() > Bpe::kMaxMerges) {
    return Status::error("there are {} merges; at most {} are supported", spec.merges.size(), Bpe::kMaxMerges);
  }
  std::vector<BpeMerge> merges;
  merges.reserve(spec.merges.size());
  for (const auto& [left, right] : spec.merges) {
    TokenId found[3];
    const std::string texts[3] = {left, right, left + right};
    for (int i = 0; i < 3; ++i) {
      const auto at = ids.find(texts[i]);
      if (at == ids.end()) {
        return Status::error("merge {} (\"{}\" and \"{}\") needs token \"{}\", which is not in the vocabulary",
                             merges.size(), shown(left), shown(right), shown(texts[i]));
      }
      found[i] = at->second;
    }
    merges.push_back({found[0], found[1], found[2]});
  }
  return merges;
}

// What a piece may be as a whole. Not the special tokens: untrusted text never becomes one of those.
std::vector<std::string_view> mergeable_bytes(const std::vector<TokenEntry>& table, const TokenizerSpec& spec) {
  std::vector<std::string_view> bytes(table.size());
  for (const auto& token : spec.vocabulary) {
    const TokenEntry& entry = table[token.id];
    if (!entry.special || entry.bytes.size() == 1) bytes[token.id] = entry.bytes;
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> Tokenizer::Impl::build(TokenizerSpec spec) {
  auto table = empty_table(spec);
  if (!table) return table.status();
  Ids ids;
  ids.reserve(spec.vocabulary.size() + spec.added.size());
  for (auto& token : spec.vocabulary) {
    if (auto status = place(*table, &ids, std::move(token.text), token.id); !status) return status;
  }
  std::unordered_map<std::string, TokenId> added_ids;
  for (const auto& token : spec.added) {
    if (auto status = place_added(*table, ids, token); !status) return status;
    added_ids.emplace(token.text, token.id);
  }
  for (auto& token : spec.unused) {
    if (auto status = place(*table, nullptr, std::move(token.text), token.id); !status) return status;
    (*table)[token.id].special = true;  // never printed unless asked for
  }
  auto merges = resolve_merges(spec, ids);
  if (!merges) return merges.status();
  BpeOptions options{.ignore_merges = spec.ignore_merges, .unknown = -1, .fuse_unknown = spec.fuse_unknown};
  if (!spec.unknown.empty()) {
    const auto at = ids.find(spec.unknown);
    if (at == ids.end()) {
      return Status::error("the unknown token \"{}\" is not in the vocabulary", shown(spec.unknown));
    }
    options.unknown = at->second;
  }
  auto added = AddedTokens::make(spec.added, spec.normalizer);
  if (!added) return added.status();
  Bpe bpe(mergeable_bytes(*table, spec), *merges, options);
  return std::unique_ptr<Impl>(new Impl{std::move(*table), std::move(bpe), spec.normalizer,
                                        std::move(spec.pre_tokenizer), std::move(*added), std::move(added_ids)});
}

}  // namespace steadfast
