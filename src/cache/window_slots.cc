// A window is as long as its streams needed so far, in powers of two: a longer stream gets a longer one in its slot.
#include "cache/window_slots.h"

#include <algorithm>
#include <bit>

namespace steadfast {
namespace {

int common(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<int>(at - a.begin());
}

int window_for(int positions, int most) {
  const int rounded = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(positions, 1024))));
  return std::max(positions, std::min(rounded, most));
}

}  // namespace

WindowSlots::WindowSlots(Backend& backend, const CacheShape& shape, int slots, int most_positions,
                         std::size_t state_budget)
    : backend_(backend),
      shape_(shape),
      most_positions_(most_positions),
      state_budget_(state_budget),
      slots_(static_cast<std::size_t>(slots)) {}

int WindowSlots::free_slots() const {
  return static_cast<int>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.lent == nullptr; }));
}

std::size_t WindowSlots::window_bytes() const {
  std::size_t bytes = 0;
  for (const Slot& slot : slots_)
    if (slot.holds() != nullptr) bytes += shape_.stream_bytes(slot.window);
  return bytes;
}

WindowSlots::Resume WindowSlots::resume(int index, std::span<const TokenId> tokens, int prompt) const {
  const Slot& slot = slots_[static_cast<std::size_t>(index)];
  if (slot.holds() == nullptr) return {};
  int most = std::min(common(slot.tokens, tokens), static_cast<int>(tokens.size()) - 1);
  if (slot.prompt != prompt) most = std::min({most, slot.prompt, prompt});
  if (shape_.delta_layers == 0) return {most, nullptr};
  Resume best;
  for (const States& kept : states_)
    if (kept.slot == index && kept.position <= most && kept.position > best.position)
      best = {kept.position, kept.memory.get()};
  const int end = static_cast<int>(slot.tokens.size());
  if (slot.lent == nullptr && end <= most && end > best.position) best = {end, nullptr};
  return best;
}

Status WindowSlots::copy(int from, const Resume& resume, StreamState& to) {
  const StreamState& source = *slots_[static_cast<std::size_t>(from)].holds();
  if (&source != &to)
    if (auto status = to.copy_positions(backend_, source, resume.position); !status) return status;
  if (shape_.delta_layers == 0) return Status::ok();
  const void* states =
      resume.states != nullptr ? const_cast<DeviceMemory*>(resume.states)->data() : source.state_data();
  if (states == to.state_data()) return Status::ok();
  return backend_.copy(to.state_data(), states, shape_.state_bytes());
}

void WindowSlots::forget_states(int slot, int beyond) {
  std::erase_if(states_, [&](const States& kept) {
    if (kept.slot != slot || kept.position <= beyond) return false;
    state_bytes_ -= kept.memory->bytes();
    return true;
  });
}

Result<WindowSlots::Lease> WindowSlots::take(std::span<const TokenId> tokens, int positions, int prompt) {
  int best = -1, own = -1;
  Resume from_best, from_own;
  for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
    const Resume here = resume(i, tokens, prompt);
    if (best < 0 || here.position > from_best.position) best = i, from_best = here;
    const Slot& slot = slots_[static_cast<std::size_t>(i)];
    if (slot.lent != nullptr) continue;
    const auto older = [&] { return slot.used < slots_[static_cast<std::size_t>(own)].used; };
    if (own < 0 || here.position > from_own.position || (here.position == from_own.position && older()))
      own = i, from_own = here;
  }
  CHECK(own >= 0, "all {} windows are lent", slots_.size());
  // A slot that gives a short prefix of much that it holds keeps its own: an older slot takes a copy.
  Slot* slot = &slots_[static_cast<std::size_t>(own)];
  const bool in_place = from_own.position == from_best.position;
  if (!in_place || 2 * from_own.position < static_cast<int>(slot->tokens.size())) {
    for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
      const Slot& other = slots_[static_cast<std::size_t>(i)];
      if (other.lent == nullptr && other.used < slots_[static_cast<std::size_t>(own)].used) own = i;
    }
    slot = &slots_[static_cast<std::size_t>(own)];
  }
  std::unique_ptr<StreamState> state;
  if (slot->state && slot->window >= positions) {
    if (from_best.position == 0) {
      if (auto status = slot->state->clear_states(backend_); !status) return status;
    } else if (auto status = copy(best, from_best, *slot->state); !status) {
      return status;
    }
    state = std::move(slot->state);
  } else {
    const int window = window_for(positions, most_positions_);
    auto made = StreamState::create(backend_, shape_, window);
    if (!made) return made.status();
    if (from_best.position > 0)
      if (auto status = copy(best, from_best, **made); !status) return status;
    state = std::move(*made);
    slot->state.reset();
    slot->window = window;
  }
  forget_states(own, best == own ? from_best.position : 0);
  slot->lent = state.get();
  slot->used = ++clock_;
  slot->tokens.assign(tokens.begin(), tokens.begin() + from_best.position);
  slot->prompt = prompt;
  return Lease{own, std::move(state), from_best.position};
}

void WindowSlots::progress(int index, const StreamState& state, std::span<const TokenId> tokens, int done) {
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  CHECK(slot.lent == &state && done >= static_cast<int>(slot.tokens.size()), "progress of slot {} to {}", index, done);
  slot.tokens.insert(slot.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(slot.tokens.size()),
                     tokens.begin() + done);
}

void WindowSlots::keep_states(int index, const StreamState& state, int position) {
  const std::size_t bytes = shape_.state_bytes();
  if (bytes == 0 || bytes > state_budget_) return;
  CHECK(slots_[static_cast<std::size_t>(index)].lent == &state, "keep_states of slot {}", index);
  while (state_bytes_ + bytes > state_budget_) {
    state_bytes_ -= states_.front().memory->bytes();
    states_.pop_front();
  }
  auto memory = backend_.allocate(bytes);
  if (!memory || !backend_.copy((*memory)->data(), state.state_data(), bytes)) return;  // kept less: replies stay
  states_.push_back({index, position, std::move(*memory)});
  state_bytes_ += bytes;
}

void WindowSlots::give_back(int index, std::unique_ptr<StreamState> state, bool usable) {
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  CHECK(slot.lent == state.get(), "slot {} is given back with another window", index);
  slot.lent = nullptr;
  slot.used = ++clock_;
  slot.state = std::move(state);
  if (usable) return;
  slot.tokens.clear();
  slot.state.reset();
  forget_states(index, 0);
}

}  // namespace steadfast
