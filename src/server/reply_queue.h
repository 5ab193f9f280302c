// Replies on their way from the engine's thread to a connection's: a queue that never blocks the engine, the number of
// streams in flight, and the set of one request's replies, which cancels what nobody waits for any more.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/service.h"
#include "server/api_error.h"

namespace steadfast {

struct ReplyEvent {
  int choice = 0;
  ReplyPiece piece;
  std::optional<ReplyEnd> end;  // the choice's last event; its piece is empty
};

class ReplyQueue {
 public:
  explicit ReplyQueue(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // Past most_bytes pieces are dropped and overflowed() tells so: the client reads too slowly and its replies are lost.
  void push(ReplyEvent event);
  // The next event; nothing when none came within `wait`.
  std::optional<ReplyEvent> pop(std::chrono::milliseconds wait);
  bool overflowed() const;

 private:
  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ReplyEvent> events_;
  std::size_t bytes_ = 0;
  bool overflowed_ = false;
};

// How many streams are running or waiting, over all requests.
class StreamCount {
 public:
  explicit StreamCount(int most) : most_(most) {}
  bool take(int streams);
  void give_back(int streams) { taken_ -= streams; }
  int most() const { return most_; }

 private:
  const int most_;
  std::atomic<int> taken_{0};
};

class ReplySet {
 public:
  ReplySet(Service& service, std::shared_ptr<StreamCount> count, std::size_t queue_bytes);
  ~ReplySet();  // cancels the replies that have not ended
  ReplySet(const ReplySet&) = delete;
  ReplySet& operator=(const ReplySet&) = delete;

  // Submits one reply for each request; their events carry the request's index. On an error none is left running.
  std::optional<ApiError> submit(std::vector<Request> requests);
  std::optional<ReplyEvent> next(std::chrono::milliseconds wait);
  bool overflowed() const { return queue_->overflowed(); }
  bool done() const { return ended_ == handles_.size(); }
  void cancel();

 private:
  Service& service_;
  std::shared_ptr<StreamCount> count_;
  std::shared_ptr<ReplyQueue> queue_;
  std::vector<ReplyHandle> handles_;
  std::vector<bool> has_ended_;
  std::size_t ended_ = 0;
};

}  // namespace steadfast
