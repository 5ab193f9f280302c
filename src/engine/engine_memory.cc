// The engine's memory: windows or pages for streams, kept prefixes, and what happens when the pool is short: kept
// prefixes go first, then the newest stream is set aside and computed again later, which by the row law changes nothing
// in its reply.
#include <unistd.h>

#include <algorithm>

#include "engine/engine_stream.h"

namespace steadfast {

int planned_pages(const CacheShape& shape, int page, int streams, int context) {
  const std::int64_t window = (context + page - 1) / page;
  const auto page_bytes = static_cast<std::int64_t>(shape.bytes_per_position()) * page;
  const std::int64_t memory = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE) / 4;
  const std::int64_t fitting = page_bytes > 0 ? memory / page_bytes : window * streams;
  return static_cast<int>(std::clamp(window * streams, std::int64_t{1}, std::max(window, fitting)));
}

Status Engine::plan_pool() {
  if (auto status = PagePool::check_page(options_.page); !status) return status;
  const CacheShape shape = loaded_->model->cache_shape(loaded_->kv_dtype);
  const int pages = options_.pool_pages > 0
                        ? options_.pool_pages
                        : planned_pages(shape, options_.page, options_.streams, loaded_->card.window);
  auto pool = PagePool::create(*loaded_->backend, shape, options_.page, pages);
  if (!pool) return pool.status();
  pool_ = std::move(*pool);
  // Kept recurrent states may take as much as a quarter of the pool, and always those of a few borders.
  const std::size_t budget =
      std::max(pool_->page_bytes() * static_cast<std::size_t>(pages) / 4, shape.state_bytes() * 8);
  prefixes_ = std::make_unique<PrefixIndex>(*pool_, *loaded_->backend, budget);
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

// Whether the pool could hold what the stream has to compute now, kept prefixes given up.
bool Engine::fits_now(const Stream& stream) const {
  if (!pool_ || running_.empty()) return true;
  const int page = pool_->page_positions();
  const int needed = (static_cast<int>(stream.tokens.size()) + page) / page;
  return needed <= pool_->free_pages() + prefixes_->evictable();
}

// A hybrid's piece ends at each page border, where its recurrent states can be kept.
int Engine::rows_allowed(const Stream& stream, int rows) const {
  if (!pool_ || pool_->shape().delta_layers == 0) return rows;
  return std::min(rows, pool_->page_positions() - stream.done % pool_->page_positions());
}

// Pages for the next rows: free ones, then kept prefixes', then those of streams younger than this one.
bool Engine::reserve(Stream& stream, int rows) {
  while (!stream.state->reserve(stream.done + rows)) {
    if (prefixes_->evict()) continue;
    if (!set_aside_newest(stream)) {
      end(stream, FinishReason::kError,
          fmt::format("the pool of {} pages cannot hold {} positions", pool_->pages(), stream.done + rows));
      return false;
    }
    if (stream.state == nullptr) return false;
  }
  return true;
}

// Takes the memory of the newest running stream; false: there is none but the needy one, which then waits for nobody.
bool Engine::set_aside_newest(const Stream& needy) {
  for (auto it = running_.rbegin(); it != running_.rend(); ++it) {
    Stream& stream = **it;
    if (stream.ended || stream.state == nullptr) continue;
    if (&stream == &needy &&
        std::count_if(running_.begin(), running_.end(), [](const auto& s) { return s->state != nullptr; }) == 1)
      return false;
    stream.state.reset();
    stream.done = 0;
    ++stream.path.set_aside;
    return true;
  }
  return false;
}

void Engine::return_set_aside() {
  std::vector<std::unique_ptr<Stream>> aside;
  for (auto& stream : running_)
    if (stream->state == nullptr) aside.push_back(std::move(stream));
  if (aside.empty()) return;
  std::erase(running_, nullptr);
  const std::lock_guard lock(mutex_);
  counters_.streams_set_aside += aside.size();
  while (!aside.empty()) {  // oldest in front
    waiting_.push_front(std::move(aside.back()));
    aside.pop_back();
  }
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
