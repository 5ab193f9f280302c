// A tree of pages. The hash finds candidates, their tokens decide.
#include "cache/prefix_index.h"

#include <xxhash.h>

#include <algorithm>

namespace steadfast {
namespace {

std::uint64_t hash_of(std::int64_t parent, std::span<const TokenId> tokens) {
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), static_cast<std::uint64_t>(parent));
}

// Of the page that begins at token `first`, how many tokens are a prompt's.
int prompt_part(int prompt, std::size_t first, std::size_t page) {
  return std::clamp(prompt - static_cast<int>(first), 0, static_cast<int>(page));
}

}  // namespace

PrefixIndex::PrefixIndex(PagePool& pool, Backend& backend, std::size_t state_budget)
    : pool_(pool), backend_(backend), state_budget_(state_budget) {}

PrefixIndex::~PrefixIndex() {
  for (const auto& [id, entry] : entries_) pool_.drop(entry.page);
}

std::int64_t PrefixIndex::child(std::int64_t parent, std::span<const TokenId> page_tokens, int prompt) const {
  const auto [first, last] = by_hash_.equal_range(hash_of(parent, page_tokens));
  for (auto it = first; it != last; ++it) {
    const Entry& entry = entries_.at(it->second);
    if (entry.parent == parent && entry.prompt == prompt &&
        std::equal(entry.tokens.begin(), entry.tokens.end(), page_tokens.begin(), page_tokens.end()))
      return it->second;
  }
  return -1;
}

PrefixIndex::Match PrefixIndex::find(std::span<const TokenId> tokens, int prompt) {
  const auto page = static_cast<std::size_t>(pool_.page_positions());
  const bool hybrid = pool_.shape().delta_layers > 0;
  Match match, best;
  std::int64_t at = -1;
  for (std::size_t first = 0; first + page < tokens.size(); first += page) {  // strictly: one token is left to compute
    at = child(at, tokens.subspan(first, page), prompt_part(prompt, first, page));
    if (at < 0) break;
    Entry& entry = entries_.at(at);
    entry.used = ++clock_;
    match.pages.push_back(entry.page);
    match.states = entry.states.get();
    if (!hybrid || match.states != nullptr) best = match;
  }
  return best;
}

void PrefixIndex::keep_states(Entry& entry, const void* states) {
  const std::size_t bytes = pool_.shape().state_bytes();
  if (states == nullptr || entry.states || bytes == 0 || bytes > state_budget_) return;
  auto memory = backend_.allocate(bytes);
  if (!memory || !backend_.copy((*memory)->data(), states, bytes)) return;  // kept less: replies do not change
  entry.states = std::move(*memory);
  state_bytes_ += bytes;
  shed_states();
}

void PrefixIndex::shed_states() {
  while (state_bytes_ > state_budget_) {
    Entry* oldest = nullptr;
    for (auto& [id, entry] : entries_)
      if (entry.states && (oldest == nullptr || entry.used < oldest->used)) oldest = &entry;
    CHECK(oldest != nullptr, "{} bytes of states without an owner", state_bytes_);
    state_bytes_ -= oldest->states->bytes();
    oldest->states.reset();
  }
}

std::int32_t PrefixIndex::keep(std::span<const TokenId> tokens, std::span<const std::int32_t> pages, const void* states,
                               int prompt) {
  const auto page = static_cast<std::size_t>(pool_.page_positions());
  CHECK(tokens.size() == pages.size() * page && !pages.empty(), "keep: {} tokens on {} pages", tokens.size(),
        pages.size());
  std::int64_t parent = -1;
  for (std::size_t i = 0; i + 1 < pages.size(); ++i) {
    parent = child(parent, tokens.subspan(i * page, page), prompt_part(prompt, i * page, page));
    if (parent < 0) return pages.back();  // a page before it was evicted: this one could not be found
  }
  const auto own = tokens.last(page);
  const int own_prompt = prompt_part(prompt, tokens.size() - page, page);
  std::int64_t id = child(parent, own, own_prompt);
  if (id < 0) {
    id = next_id_++;
    Entry entry;
    entry.parent = parent;
    entry.tokens.assign(own.begin(), own.end());
    entry.prompt = own_prompt;
    entry.page = pages.back();
    pool_.share(entry.page);
    by_hash_.emplace(hash_of(parent, own), id);
    entries_.emplace(id, std::move(entry));
    if (parent >= 0) ++entries_.at(parent).children;
  }
  Entry& entry = entries_.at(id);
  entry.used = ++clock_;
  keep_states(entry, states);
  return entry.page;
}

bool PrefixIndex::evict() {
  auto victim = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->second.children > 0 || pool_.count(it->second.page) > 1) continue;
    if (victim == entries_.end() || it->second.used < victim->second.used) victim = it;
  }
  if (victim == entries_.end()) return false;
  const Entry& entry = victim->second;
  const auto [first, last] = by_hash_.equal_range(hash_of(entry.parent, entry.tokens));
  for (auto it = first; it != last; ++it) {
    if (it->second != victim->first) continue;
    by_hash_.erase(it);
    break;
  }
  if (entry.parent >= 0) --entries_.at(entry.parent).children;
  if (entry.states) state_bytes_ -= entry.states->bytes();
  pool_.drop(entry.page);
  entries_.erase(victim);
  return true;
}

// A stream that holds a page holds the kept pages before it too (keep() sees to it), so counts of one mark whole
// branches.
int PrefixIndex::evictable() const {
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(),
                                        [&](const auto& entry) { return pool_.count(entry.second.page) == 1; }));
}

}  // namespace steadfast
