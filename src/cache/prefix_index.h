// Kept prefixes: pages whose tokens are known, found again by any stream that begins with the same tokens in the same
// roles (rows/round.h): rows of a prompt and of a reply may differ in their bits. A page is found by its tokens, by how
// many of them are a prompt's and by the page before it, compared exactly, never by a hash alone. A hybrid resumes
// only where its recurrent states were kept, at a page's end, under a budget of bytes. The least recently used goes
// first.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cache/page_pool.h"
#include "rows/round.h"
#include "text/tokenizer.h"

namespace steadfast {

class PrefixIndex {
 public:
  // state_budget: bytes of kept recurrent states.
  PrefixIndex(PagePool& pool, Backend& backend, std::size_t state_budget);
  ~PrefixIndex();
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  struct Match {
    std::vector<std::int32_t> pages;
    const DeviceMemory* states = nullptr;  // the recurrent states at the end of pages; hybrids only
  };
  // The longest kept prefix of whole pages that leaves at least one of the tokens to compute. prompt: so many of the
  // tokens are a prompt's; kAllPrompt where roles make no difference.
  Match find(std::span<const TokenId> tokens, int prompt = kAllPrompt);

  // Keeps pages.back(), which holds the last page_positions of tokens; the pages before it lie before it. states: the
  // recurrent states after these tokens (hybrids), copied; nullptr elsewhere. Returns the page to hold instead of
  // pages.back(): the same one, or an older one with the same tokens behind the same prefix, whose bits are the same.
  std::int32_t keep(std::span<const TokenId> tokens, std::span<const std::int32_t> pages, const void* states,
                    int prompt = kAllPrompt);

  // Gives back the page of the least recently used prefix that no stream and no longer prefix needs; false: there is
  // none.
  bool evict();
  // Pages that evict() can give back in all, were it called again and again.
  int evictable() const;
  std::size_t state_bytes() const { return state_bytes_; }
  int kept() const { return static_cast<int>(entries_.size()); }

 private:
  struct Entry {
    std::int64_t parent = -1;     // id of the entry before it; -1: the first page
    std::vector<TokenId> tokens;  // of this page
    int prompt = 0;               // so many of them are a prompt's
    std::int32_t page = -1;
    std::uint64_t used = 0;  // a clock of uses
    int children = 0;
    std::unique_ptr<DeviceMemory> states;
  };
  std::int64_t child(std::int64_t parent, std::span<const TokenId> page_tokens, int prompt) const;
  void keep_states(Entry& entry, const void* states);
  void shed_states();

  PagePool& pool_;
  Backend& backend_;
  std::size_t state_budget_, state_bytes_ = 0;
  std::uint64_t clock_ = 0;
  std::int64_t next_id_ = 0;
  std::map<std::int64_t, Entry> entries_;
  std::multimap<std::uint64_t, std::int64_t> by_hash_;  // hash of (parent, tokens) to id
};

}  // namespace steadfast
