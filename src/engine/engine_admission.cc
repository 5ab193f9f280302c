// Who runs: cancelled streams leave, waiting ones start where there is room, and streams are set aside where there is
// none: the background's first, then the newest. A stream that was set aside waits in line at its age and is computed
// again, which by the row law changes nothing in its reply. docs/scheduling.md states the rules.
#include <algorithm>

#include "engine/engine_stream.h"
#include "schedule/admission.h"

namespace steadfast {

void Engine::insert(Streams& streams, std::unique_ptr<Stream> stream) {
  const auto place = std::upper_bound(streams.begin(), streams.end(), stream,
                                      [](const auto& a, const auto& b) { return a->before(*b); });
  streams.insert(place, std::move(stream));
}

// Takes cancellations and newcomers; false: nothing to run.
bool Engine::admit(std::unique_lock<std::mutex>& lock) {
  end_cancelled(lock);
  while (!stop_ && !waiting_.empty()) {
    const int index = next_waiting();
    if (index >= 0)
      start(lock, index);
    else if (waiting_.front()->request.background || !set_aside_background())
      break;
  }
  counters_.streams_waiting = static_cast<int>(waiting_.size());
  counters_.streams_running = static_cast<int>(running_.size());
  count_memory();
  return !running_.empty();
}

void Engine::end_cancelled(std::unique_lock<std::mutex>& lock) {
  if (!stop_ && cancelled_.empty()) return;
  const auto leaves = [&](const auto& stream) { return stop_ || cancelled_.count(stream->handle) != 0; };
  std::vector<std::unique_ptr<Stream>> gone;
  for (auto& stream : waiting_)
    if (leaves(stream)) gone.push_back(std::move(stream));
  std::erase(waiting_, nullptr);
  std::vector<Stream*> stopped;
  for (auto& stream : running_)
    if (leaves(stream)) stopped.push_back(stream.get());
  cancelled_.clear();
  lock.unlock();  // handlers run without the lock
  for (auto& stream : gone) end(*stream, FinishReason::kCancelled, "");
  for (Stream* stream : stopped) end(*stream, FinishReason::kCancelled, "");
  drop_ended();
  lock.lock();
}

// Index in line of the stream to start now; -1: none.
int Engine::next_waiting() {
  if (running_.size() >= static_cast<std::size_t>(options_.streams)) return -1;
  std::vector<Waiting> line;
  for (std::size_t i = 0; i < waiting_.size() && i < kMostLooked; ++i)
    line.push_back({waiting_[i]->passed, waiting_[i]->request.background});
  return next_to_start(line, [&](int i) { return fits_now(*waiting_[static_cast<std::size_t>(i)]); });
}

void Engine::start(std::unique_lock<std::mutex>& lock, int index) {
  for (int i = 0; i < index; ++i) ++waiting_[static_cast<std::size_t>(i)]->passed;
  auto stream = std::move(waiting_[static_cast<std::size_t>(index)]);
  waiting_.erase(waiting_.begin() + index);
  lock.unlock();  // allocation and handlers run without the lock
  const auto status = start_stream(*stream);
  if (status)
    insert(running_, std::move(stream));
  else
    end(*stream, FinishReason::kError, status.message());
  lock.lock();
}

// Whether the pool could hold what the stream has to compute now beside what the running ones have to, with kept
// prefixes given up, and a page for each to go on.
bool Engine::fits_now(const Stream& stream) {
  if (!pool_ || running_.empty()) return true;
  int open = pool_->free_pages() + prefixes_->evictable();
  for (const auto& running : running_)
    open -= std::max(0, pages_for(*running) - static_cast<int>(running->state->pages().size())) + 1;
  int wanted = pages_for(stream);
  for (const auto page : prefixes_->find(stream.tokens, prompt_tokens(stream)).pages) {
    --wanted;
    if (pool_->count(page) == 1) --open;  // kept: it cannot be given up and used at once
  }
  return wanted <= open;
}

void Engine::set_aside(Stream& stream) {
  release(stream, true);
  stream.done = 0;
  ++stream.path.set_aside;
}

// With the lock: the newest of the background's streams goes back in line; false: none runs.
bool Engine::set_aside_background() {
  if (running_.empty() || !running_.back()->request.background) return false;
  auto stream = std::move(running_.back());
  running_.pop_back();
  set_aside(*stream);
  ++counters_.streams_set_aside;
  insert(waiting_, std::move(stream));
  return true;
}

// Takes the memory of the last running stream in precedence; false: no other than the needy one has any.
bool Engine::set_aside_last(const Stream& needy) {
  const auto holds = [](const auto& stream) { return stream->state != nullptr && !stream->ended; };
  if (std::count_if(running_.begin(), running_.end(), holds) <= 1) return false;
  const auto last = std::find_if(running_.rbegin(), running_.rend(), holds);
  CHECK(last != running_.rend() && needy.state != nullptr, "stream {} needs pages and is not running", needy.handle);
  set_aside(**last);
  return true;
}

void Engine::return_set_aside() {
  std::vector<std::unique_ptr<Stream>> aside;
  for (auto& stream : running_)
    if (stream->state == nullptr) aside.push_back(std::move(stream));
  if (aside.empty()) return;
  std::erase(running_, nullptr);
  const std::lock_guard lock(mutex_);
  counters_.streams_set_aside += aside.size();
  for (auto& stream : aside) insert(waiting_, std::move(stream));
}

}  // namespace steadfast
