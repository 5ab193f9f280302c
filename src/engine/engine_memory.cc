// The engine's memory: windows or pages for streams, and the prefixes that both keep. When the pool is short kept
// prefixes go first, then streams are set aside (engine_admission.cc).
#include <algorithm>

#include "engine/engine_stream.h"

namespace steadfast {
namespace {

constexpr int kWindowBorder = 256;  // positions between a window's kept recurrent states
constexpr int kLongRounds = 1024;   // rows

}  // namespace

Status Engine::make_pool() {
  const CacheShape shape = loaded_->model->cache_shape(loaded_->kv_dtype);
  auto pool = PagePool::create(*loaded_->backend, shape, memory_.page, memory_.pages);
  if (!pool) return pool.status();
  pool_ = std::move(*pool);
  prefixes_ = std::make_unique<PrefixIndex>(*pool_, *loaded_->backend, memory_.kept_states);
  return Status::ok();
}

void Engine::make_windows() {
  windows_ = std::make_unique<WindowSlots>(*loaded_->backend, loaded_->model->cache_shape(loaded_->kv_dtype),
                                           memory_.streams, memory_.context, memory_.kept_states);
}

// Gives the stream its memory; it starts behind the longest kept prefix.
Status Engine::start_stream(Stream& stream) {
  const int positions = static_cast<int>(stream.request.prompt.size()) + stream.limit;
  if (auto status = pool_ ? start_on_pages(stream, positions) : start_in_window(stream, positions); !status)
    return status;
  if (!stream.began) stream.started = Clock::now();
  stream.began = true;
  stream.path.prefix_rows += stream.done;
  const std::lock_guard lock(mutex_);
  counters_.prompt_tokens_reused += static_cast<std::uint64_t>(stream.done);
  return Status::ok();
}

Status Engine::start_on_pages(Stream& stream, int positions) {
  auto state = StreamState::create_paged(*loaded_->backend, *pool_, positions);
  if (!state) return state.status();
  stream.state = std::move(*state);
  PrefixIndex::Match match;
  if (options_.prefixes) match = prefixes_->find(stream.tokens, prompt_tokens(stream));
  stream.state->adopt(match.pages);
  stream.done = static_cast<int>(match.pages.size()) * pool_->page_positions();
  stream.path.page = pool_->page_positions();
  if (match.states == nullptr) return Status::ok();
  return loaded_->backend->copy(stream.state->state_data(), const_cast<DeviceMemory*>(match.states)->data(),
                                pool_->shape().state_bytes());
}

Status Engine::start_in_window(Stream& stream, int positions) {
  auto lease = windows_->take(stream.tokens, positions, prompt_tokens(stream));
  if (!lease) return lease.status();
  stream.slot = lease->slot;
  stream.state = std::move(lease->state);
  stream.done = lease->resumed;
  return Status::ok();
}

// Takes the stream's memory from it. usable: what it stored may serve others.
void Engine::release(Stream& stream, bool usable) {
  if (stream.slot >= 0) windows_->give_back(stream.slot, std::move(stream.state), usable);
  stream.slot = -1;
  stream.state.reset();
}

int Engine::prompt_tokens(const Stream& stream) const {
  return loaded_->backend->prompt_act() == loaded_->backend->act() ? kAllPrompt : stream.prompt();
}

// Pages that the tokens it has and the next one take.
int Engine::pages_for(const Stream& stream) const {
  return static_cast<int>(stream.tokens.size()) / pool_->page_positions() + 1;
}

// A hybrid's piece ends at each border (of pages; of kWindowBorder positions in a window), where its recurrent states
// can be kept; 0: it may end anywhere.
int Engine::rows_to_border(const Stream& stream) const {
  if (memory_.kept_states == 0) return 0;
  const int border = pool_ ? pool_->page_positions() : kWindowBorder;
  const int next = border - stream.done % border;
  // A device of long rounds would waste itself on short ones: a piece passes over borders, up to a round's usual rows.
  const int usual = loaded_->backend->usual_rows();
  if (usual < kLongRounds || stream.pending() < next) return next;
  return next + std::max(0, std::min(stream.pending(), usual) - next) / border * border;
}

// Pages for the next rows: free ones, then kept prefixes', then those of the streams behind this one. False: it was the
// last itself and is set aside.
bool Engine::reserve(Stream& stream, int rows) {
  while (!stream.state->reserve(stream.done + rows)) {
    if (prefixes_->evict()) continue;
    if (!set_aside_last(stream)) {
      end(stream, FinishReason::kError,
          fmt::format("the pool of {} pages cannot hold {} positions", pool_->pages(), stream.done + rows));
      return false;
    }
    if (stream.state == nullptr) return false;
  }
  return true;
}

// The pool's counters, under the lock. Looking at every kept page takes time, so not after each of many short rounds.
void Engine::count_memory() {
  if (windows_) counters_.kept_state_bytes = windows_->state_bytes();
  if (!pool_) return;
  const auto now = Clock::now();
  if (!running_.empty() && now - memory_counted_ < std::chrono::milliseconds(100)) return;
  memory_counted_ = now;
  counters_.pages_free = pool_->free_pages();
  counters_.pages_kept = prefixes_->evictable();
  counters_.pages_in_use = pool_->pages() - counters_.pages_free - counters_.pages_kept;
  counters_.kept_state_bytes = prefixes_->state_bytes();
}

// What the last rows stored may serve others.
void Engine::keep_prefix(Stream& stream, int before) {
  if (!options_.prefixes) return;
  if (pool_) return keep_pages(stream, before);
  windows_->progress(stream.slot, *stream.state, stream.tokens, stream.done);
  if (memory_.kept_states > 0 && stream.done % kWindowBorder == 0)
    windows_->keep_states(stream.slot, *stream.state, stream.done);
}

// Every page that the last rows filled.
void Engine::keep_pages(Stream& stream, int before) {
  const int page = pool_->page_positions();
  const bool hybrid = pool_->shape().delta_layers > 0;
  for (int border = (before / page + 1) * page; border <= stream.done; border += page) {
    const void* states = hybrid && border == stream.done ? stream.state->state_data() : nullptr;
    const auto pages = stream.state->pages().first(static_cast<std::size_t>(border / page));
    const auto tokens = std::span<const TokenId>(stream.tokens).first(static_cast<std::size_t>(border));
    const auto held = prefixes_->keep(tokens, pages, states, prompt_tokens(stream));
    if (held != pages.back()) stream.state->exchange(pages.size() - 1, held);
  }
}

}  // namespace steadfast
