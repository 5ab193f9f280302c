// Hash tables of pairs and of whole tokens, and the two merging loops.
#include "text/bpe.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "base/check.h"

namespace steadfast {
namespace {

constexpr std::size_t kShortPiece = 48;  // bytes; up to here scanning for the lowest rank beats a queue

std::uint64_t pair_key(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

std::uint64_t mix(std::uint64_t key) {
  key *= 0x9E3779B97F4A7C15ull;
  return key ^ key >> 32;
}

constexpr std::uint64_t kFreePair = ~std::uint64_t{0};

}  // namespace

Bpe::Bpe(std::vector<std::string_view> bytes, std::span<const BpeMerge> merges, BpeOptions options)
    : bytes_(std::move(bytes)), options_(options) {
  CHECK(merges.size() <= kMaxMerges, "{} merges", merges.size());
  byte_token_.fill(-1);
  std::size_t tokens = 0;
  for (const auto& token : bytes_) tokens += token.empty() ? 0 : 1;
  pieces_.assign(std::bit_ceil(2 * tokens + 2), {0, -1});
  for (std::size_t id = 0; id < bytes_.size(); ++id) {
    if (!bytes_[id].empty()) add_token(static_cast<TokenId>(id));
  }
  pairs_.assign(std::bit_ceil(2 * merges.size() + 2), {kFreePair, {kNoRank, -1}});
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    add_merge(merges[rank].left, merges[rank].right, {static_cast<std::uint32_t>(rank), merges[rank].result});
  }
  whole_ = std::make_unique<std::atomic<std::uint8_t>[]>(bytes_.size());
}

void Bpe::add_merge(TokenId left, TokenId right, Merge merge) {
  const std::uint64_t key = pair_key(left, right);
  const std::size_t mask = pairs_.size() - 1;
  std::size_t slot = mix(key) & mask;
  while (pairs_[slot].pair != kFreePair && pairs_[slot].pair != key) slot = (slot + 1) & mask;
  pairs_[slot] = {key, merge};
}

Bpe::Merge Bpe::merge_of(TokenId left, TokenId right) const {
  const std::uint64_t key = pair_key(left, right);
  const std::size_t mask = pairs_.size() - 1;
  for (std::size_t slot = mix(key) & mask;; slot = (slot + 1) & mask) {
    if (pairs_[slot].pair == key) return pairs_[slot].merge;
    if (pairs_[slot].pair == kFreePair) return {kNoRank, -1};
  }
}

void Bpe::add_token(TokenId id) {
  const std::string_view token = bytes_[id];
  if (token.size() == 1) byte_token_[static_cast<unsigned char>(token.front())] = id;
  const std::uint64_t hash = XXH3_64bits(token.data(), token.size());
  const std::size_t mask = pieces_.size() - 1;
  std::size_t slot = hash & mask;
  while (pieces_[slot].id >= 0) slot = (slot + 1) & mask;
  pieces_[slot] = {static_cast<std::uint32_t>(hash >> 32), id};
}

TokenId Bpe::token_of(std::string_view piece) const {
  const std::uint64_t hash = XXH3_64bits(piece.data(), piece.size());
  const std::size_t mask = pieces_.size() - 1;
  for (std::size_t slot = hash & mask; pieces_[slot].id >= 0; slot = (slot + 1) & mask) {
    if (pieces_[slot].hash == hash >> 32 && bytes_[pieces_[slot].id] == piece) return pieces_[slot].id;
  }
  return -1;
}

bool Bpe::stays_whole(TokenId id) const {
  if (options_.ignore_merges) return true;
  std::uint8_t note = whole_[id].load(std::memory_order_relaxed);
  if (note == 0) {
    std::vector<TokenId> ids;
    const std::string_view token = bytes_[id];
    token.size() <= kShortPiece ? merge_short(token, ids) : merge_long(token, ids);
    note = ids.size() == 1 && ids.front() == id ? 1 : 2;
    whole_[id].store(note, std::memory_order_relaxed);
  }
  return note == 1;
}

void Bpe::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (piece.empty()) return;
  const TokenId token = token_of(piece);
  if (token >= 0 && stays_whole(token)) {
    ids.push_back(token);
  } else if (piece.size() <= kShortPiece) {
    merge_short(piece, ids);
  } else {
    merge_long(piece, ids);
  }
}

template <typename Push>
void Bpe::symbols_of(std::string_view piece, Push&& push) const {
  bool after_unknown = false;
  for (const char byte : piece) {
    const TokenId id = byte_token_[static_cast<unsigned char>(byte)];
    if (id >= 0) {
      push(id);
    } else if (options_.unknown >= 0 && !(after_unknown && options_.fuse_unknown)) {
      push(options_.unknown);
    }
    after_unknown = id < 0;
  }
}

void Bpe::merge_short(std::string_view piece, std::vector<TokenId>& ids) const {
  TokenId symbols[kShortPiece];
  Merge merges[kShortPiece];  // merges[i]: of symbols i and i + 1
  std::size_t count = 0;
  symbols_of(piece, [&](TokenId id) { symbols[count++] = id; });
  if (count == 0) return;
  for (std::size_t i = 0; i + 1 < count; ++i) merges[i] = merge_of(symbols[i], symbols[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == kNoRank) break;
    symbols[best] = merges[best].result;
    std::copy(symbols + best + 2, symbols + count, symbols + best + 1);
    std::copy(merges + std::min(best + 2, count - 1), merges + count - 1, merges + best + 1);
    --count;
    if (best > 0) merges[best - 1] = merge_of(symbols[best - 1], symbols[best]);
    if (best + 1 < count) merges[best] = merge_of(symbols[best], symbols[best + 1]);
  }
  ids.insert(ids.end(), symbols, symbols + count);
}

void Bpe::merge_long(std::string_view piece, std::vector<TokenId>& ids) const {
  constexpr std::size_t kEnd = ~std::size_t{0};
  struct Symbol {
    TokenId id;  // -1: merged into the one before
    std::size_t previous, next;
  };
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  symbols_of(piece, [&](TokenId id) { symbols.push_back({id, symbols.size() - 1, symbols.size() + 1}); });
  if (symbols.empty()) return;
  symbols.back().next = kEnd;  // the first one's previous is kEnd already

  // An entry is rank and position of a pair's left symbol: rank in the high 24 bits, so the least entry is the pair of
  // lowest rank, leftmost. It is void if the pair there has another rank by now.
  constexpr int kPositionBits = 40;
  const auto rank_at = [&](std::size_t at) {
    return symbols[at].next == kEnd ? kNoRank : merge_of(symbols[at].id, symbols[symbols[at].next].id).rank;
  };
  std::vector<std::uint64_t> entries;
  for (std::size_t at = 0; at < symbols.size(); ++at) {
    if (const auto rank = rank_at(at); rank != kNoRank) entries.push_back(std::uint64_t{rank} << kPositionBits | at);
  }
  std::priority_queue queue(std::greater<>(), std::move(entries));
  const auto enqueue = [&](std::size_t at) {
    if (const auto rank = rank_at(at); rank != kNoRank) queue.push(std::uint64_t{rank} << kPositionBits | at);
  };
  while (!queue.empty()) {
    const std::uint64_t entry = queue.top();
    queue.pop();
    const std::size_t at = entry & ((std::uint64_t{1} << kPositionBits) - 1);
    Symbol& left = symbols[at];
    if (left.id < 0 || left.next == kEnd) continue;
    Symbol& right = symbols[left.next];
    const Merge merge = merge_of(left.id, right.id);
    if (merge.rank != entry >> kPositionBits) continue;
    left.id = merge.result;
    left.next = right.next;
    right.id = -1;
    if (left.next != kEnd) symbols[left.next].previous = at;
    if (left.previous != kEnd) enqueue(left.previous);
    enqueue(at);
  }
  for (std::size_t at = 0; at != kEnd; at = symbols[at].next) ids.push_back(symbols[at].id);
}

}  // namespace steadfast
