// Byte-pair merging of one piece. Source: model-spec 6.5; huggingface/tokenizers src/models/bpe.
// Order: again and again the adjacent pair of lowest rank, leftmost on ties. O(n^2) on a short piece, O(n log n) on a
// long one. Shared by threads: the only thing written after loading is an atomic note per token, the same from any
// thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace steadfast {

struct BpeMerge {
  TokenId left, right, result;
};

struct BpeOptions {
  bool ignore_merges = false;  // a piece that is a token is that token
  TokenId unknown = -1;        // stands for a byte that is no token; -1: such a byte is dropped
  bool fuse_unknown = false;   // a run of them is one
};

class Bpe {
 public:
  static constexpr std::size_t kMaxMerges = std::size_t{1} << 24;

  // bytes[id]: what token `id` stands for; empty: no token, or one that text never becomes by merging (an added token).
  // The views must outlive the Bpe. merges: lowest rank first, at most kMaxMerges; of two for a pair the last counts.
  Bpe(std::vector<std::string_view> bytes, std::span<const BpeMerge> merges, BpeOptions options);

  // Appends the ids of one piece.
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  struct Merge {
    std::uint32_t rank;
    TokenId result;
  };
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;
  struct PairSlot {
    std::uint64_t pair;
    Merge merge;
  };
  struct PieceSlot {
    std::uint32_t hash;  // the high half; the low half chose the slot
    TokenId id;          // -1: free
  };

  Merge merge_of(TokenId left, TokenId right) const;
  void add_merge(TokenId left, TokenId right, Merge merge);
  TokenId token_of(std::string_view piece) const;
  void add_token(TokenId id);
  bool stays_whole(TokenId id) const;
  template <typename Ids>
  void symbols_of(std::string_view piece, Ids&& push) const;
  void merge_short(std::string_view piece, std::vector<TokenId>& ids) const;
  void merge_long(std::string_view piece, std::vector<TokenId>& ids) const;

  std::vector<std::string_view> bytes_;
  BpeOptions options_;
  std::array<TokenId, 256> byte_token_;
  std::vector<PairSlot> pairs_;                         // open addressing, a power of two, at most half full
  std::vector<PieceSlot> pieces_;                       // the same
  std::unique_ptr<std::atomic<std::uint8_t>[]> whole_;  // per token: is its own merging; 0 not yet known, 1 yes, 2 no
};

}  // namespace steadfast
