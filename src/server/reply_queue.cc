// The engine's callbacks own the queue and the count together with the connection, so either side may go first.
#include "server/reply_queue.h"

namespace steadfast {

namespace {

std::size_t size_of(const ReplyPiece& piece) {
  std::size_t bytes = sizeof(ReplyEvent) + piece.text.size() + piece.ids.size() * sizeof(TokenId);
  for (const TokenLogprob& logprob : piece.logprobs) {
    bytes += sizeof logprob + logprob.top.size() * sizeof logprob.top.front();
  }
  return bytes;
}

}  // namespace

void ReplyQueue::push(ReplyEvent event) {
  {
    const std::lock_guard lock(mutex_);
    const std::size_t bytes = size_of(event.piece);
    if (!event.end && (overflowed_ || bytes_ + bytes > most_bytes_)) {
      overflowed_ = true;
      return;
    }
    bytes_ += bytes;
    events_.push_back(std::move(event));
  }
  changed_.notify_one();
}

std::optional<ReplyEvent> ReplyQueue::pop(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, wait, [this] { return !events_.empty(); })) return std::nullopt;
  ReplyEvent event = std::move(events_.front());
  events_.pop_front();
  bytes_ -= size_of(event.piece);
  return event;
}

bool ReplyQueue::overflowed() const {
  const std::lock_guard lock(mutex_);
  return overflowed_;
}

bool StreamCount::take(int streams) {
  int before = taken_.load();
  do {
    if (before + streams > most_) return false;
  } while (!taken_.compare_exchange_weak(before, before + streams));
  return true;
}

ReplySet::ReplySet(Service& service, std::shared_ptr<StreamCount> count, std::size_t queue_bytes)
    : service_(service), count_(std::move(count)), queue_(std::make_shared<ReplyQueue>(queue_bytes)) {}

ReplySet::~ReplySet() { cancel(); }

std::optional<ApiError> ReplySet::submit(std::vector<Request> requests) {
  const int streams = static_cast<int>(requests.size());
  if (streams > count_->most()) {
    return ApiError{
        400, fmt::format("the request asks for {} replies at once; this server takes {}", streams, count_->most()), "n",
        ""};
  }
  if (!count_->take(streams)) return ApiError{503, "the server's queue is full; try again later", "", "queue_full"};
  for (int i = 0; i < streams; ++i) {
    ReplyHandler handler;
    handler.on_piece = [queue = queue_, i](const ReplyPiece& piece) { queue->push({i, piece, std::nullopt}); };
    handler.on_end = [queue = queue_, count = count_, i](const ReplyEnd& end) {
      count->give_back(1);
      queue->push({i, {}, end});
    };
    auto handle = service_.submit(std::move(requests[static_cast<std::size_t>(i)]), std::move(handler));
    if (!handle) {
      count_->give_back(streams - i);
      cancel();
      return ApiError{400, handle.message(), "", ""};
    }
    handles_.push_back(*handle);
    has_ended_.push_back(false);
  }
  return std::nullopt;
}

std::optional<ReplyEvent> ReplySet::next(std::chrono::milliseconds wait) {
  auto event = queue_->pop(wait);
  if (event && event->end) {
    has_ended_[static_cast<std::size_t>(event->choice)] = true;
    ++ended_;
  }
  return event;
}

void ReplySet::cancel() {
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    if (!has_ended_[i]) service_.cancel(handles_[i]);
  }
}

}  // namespace steadfast
