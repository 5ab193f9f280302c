// The engine's memory: windows or pages for streams, and kept prefixes. When the pool is short kept prefixes go first,
// then streams are set aside (engine_admission.cc).
#include <algorithm>

#include "engine/engine_stream.h"

namespace steadfast {

Status Engine::make_pool() {
  const CacheShape shape = loaded_->model->cache_shape(loaded_->kv_dtype);
  auto pool = PagePool::create(*loaded_->backend, shape, memory_.page, memory_.pages);
  if (!pool) return pool.status();
  pool_ = std::move(*pool);
  prefixes_ = std::make_unique<PrefixIndex>(*pool_, *loaded_->backend, memory_.kept_states);
  return Status::ok();
}

// Gives the stream its memory; on pages it starts behind the longest kept prefix.
Status Engine::start_stream(Stream& stream) {
  const int window = static_cast<int>(stream.request.prompt.size()) + stream.limit;
  const CacheShape shape = loaded_->model->cache_shape(loaded_->kv_dtype);
  auto state = pool_ ? StreamState::create_paged(*loaded_->backend, *pool_, window)
                     : StreamState::create(*loaded_->backend, shape, window);
  if (!state) return state.status();
  stream.state = std::move(*state);
  stream.done = 0;
  if (!stream.began) stream.started = Clock::now();
  stream.began = true;
  if (!pool_) return Status::ok();
  const PrefixIndex::Match match = prefixes_->find(stream.tokens);
  stream.state->adopt(match.pages);
  stream.done = static_cast<int>(match.pages.size()) * pool_->page_positions();
  stream.path.page = pool_->page_positions();
  stream.path.prefix_rows += stream.done;
  {
    const std::lock_guard lock(mutex_);
    counters_.prompt_tokens_reused += static_cast<std::uint64_t>(stream.done);
  }
  if (match.states == nullptr) return Status::ok();
  return loaded_->backend->copy(stream.state->state_data(), const_cast<DeviceMemory*>(match.states)->data(),
                                shape.state_bytes());
}

// Pages that the tokens it has and the next one take.
int Engine::pages_for(const Stream& stream) const {
  return static_cast<int>(stream.tokens.size()) / pool_->page_positions() + 1;
}

// A hybrid's piece ends at each page border, where its recurrent states can be kept; 0: it may end anywhere.
int Engine::rows_to_border(const Stream& stream) const {
  if (!pool_ || pool_->shape().delta_layers == 0) return 0;
  return pool_->page_positions() - stream.done % pool_->page_positions();
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
  if (!pool_) return;
  const auto now = Clock::now();
  if (!running_.empty() && now - memory_counted_ < std::chrono::milliseconds(100)) return;
  memory_counted_ = now;
  counters_.pages_free = pool_->free_pages();
  counters_.pages_kept = prefixes_->evictable();
  counters_.pages_in_use = pool_->pages() - counters_.pages_free - counters_.pages_kept;
  counters_.kept_state_bytes = prefixes_->state_bytes();
}

// Keeps every page that the last rows filled.
void Engine::keep_pages(Stream& stream, int before) {
  if (!pool_) return;
  const int page = pool_->page_positions();
  const bool hybrid = pool_->shape().delta_layers > 0;
  for (int border = (before / page + 1) * page; border <= stream.done; border += page) {
    const void* states = hybrid && border == stream.done ? stream.state->state_data() : nullptr;
    const auto pages = stream.state->pages().first(static_cast<std::size_t>(border / page));
    const auto held =
        prefixes_->keep(std::span<const TokenId>(stream.tokens).first(static_cast<std::size_t>(border)), pages, states);
    if (held != pages.back()) stream.state->exchange(pages.size() - 1, held);
  }
}

}  // namespace steadfast
