// Windows that outlive their streams: each of a fixed number of slots holds one whole window, lent to a stream while it
// runs. Its keys and values stay behind and serve later streams that begin with the same tokens: the slot's own next
// stream goes on in place, others copy the prefix. A hybrid resumes where its recurrent states are known: at borders
// where they were kept, under a budget of bytes, and at the end of a stream that has ended.
// Rows of a prompt serve prompts alone, those of a reply replies (rows/round.h): a prefix ends where the roles part.
// By the row law a resumed stream's bits are those of one computed from nothing. Used by the engine's thread alone.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "cache/stream_state.h"
#include "rows/round.h"
#include "text/tokenizer.h"

namespace steadfast {

class WindowSlots {
 public:
  // most_positions: what a stream may ever need. state_budget: bytes of kept recurrent states.
  WindowSlots(Backend& backend, const CacheShape& shape, int slots, int most_positions, std::size_t state_budget);

  struct Lease {
    int slot = -1;
    std::unique_ptr<StreamState> state;
    int resumed = 0;  // positions that need not be computed; leaves at least one token
  };
  // A free slot's window with room for `positions`, holding the longest prefix of `tokens` that any slot can give; of
  // slots that give the same, the one unused for longest. CHECKs that a slot is free. prompt: so many of the tokens are
  // a prompt's; kAllPrompt where roles make no difference.
  Result<Lease> take(std::span<const TokenId> tokens, int positions, int prompt = kAllPrompt);
  // A lent window now holds `done` positions of these tokens: others may copy them.
  void progress(int slot, const StreamState& state, std::span<const TokenId> tokens, int done);
  // The recurrent states of a lent window stand behind `position`: keeps them (hybrids only).
  void keep_states(int slot, const StreamState& state, int position);
  // The stream has ended. usable: what it computed can be trusted (no round of it failed).
  void give_back(int slot, std::unique_ptr<StreamState> state, bool usable);

  int free_slots() const;
  std::size_t state_bytes() const { return state_bytes_; }
  std::size_t window_bytes() const;  // of all windows, lent ones too

 private:
  struct States {
    int slot = -1, position = 0;
    std::unique_ptr<DeviceMemory> memory;
  };
  struct Slot {
    std::vector<TokenId> tokens;         // of the positions that the window holds
    int prompt = 0;                      // so many of them, or all, are a prompt's
    std::unique_ptr<StreamState> state;  // nullptr: lent, or never used
    const StreamState* lent = nullptr;
    int window = 0;
    std::uint64_t used = 0;
    const StreamState* holds() const { return lent != nullptr ? lent : state.get(); }
  };
  // Where a stream of these tokens can go on from a slot's window; states: those to load, nullptr: the window's own.
  struct Resume {
    int position = 0;
    const DeviceMemory* states = nullptr;
  };
  Resume resume(int slot, std::span<const TokenId> tokens, int prompt) const;
  Status copy(int from, const Resume& resume, StreamState& to);
  void forget_states(int slot, int beyond);

  Backend& backend_;
  CacheShape shape_;
  int most_positions_ = 0;
  std::size_t state_budget_ = 0, state_bytes_ = 0;
  std::uint64_t clock_ = 0;
  std::vector<Slot> slots_;
  std::list<States> states_;  // oldest first
};

}  // namespace steadfast
