// Submitters wait while too many streams are open; cancellations come from submitters and from the engine's thread.
#include "crowd.h"

#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

namespace steadfast::test {
namespace {

class Crowd {
 public:
  Crowd(Engine& engine, const CrowdRules& rules) : engine_(engine), rules_(rules) {
    streams_.resize(static_cast<std::size_t>(rules.streams));
  }

  CrowdResult run() {
    std::vector<std::thread> threads;
    for (int t = 0; t < rules_.threads; ++t) threads.emplace_back([this, t] { submit_all(t); });
    for (auto& thread : threads) thread.join();
    std::unique_lock lock(mutex_);
    wait(lock, [this] { return open_ == 0; });
    lock.unlock();
    for (;;) {
      const auto counters = engine_.counters();
      if (counters.streams_running == 0 && counters.streams_waiting == 0) return result_;
      std::this_thread::yield();
    }
  }

 private:
  struct Stream {
    std::vector<TokenId> ids;
    int cancel_after = -1;  // tokens
    ReplyHandle handle = 0;
  };

  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition condition) {
    while (!condition()) {
      const int before = result_.ended;
      const bool came = changed_.wait_for(lock, std::chrono::seconds(60), condition);
      CHECK(came || result_.ended > before, "no stream ended for a minute: {} are open", open_);
    }
  }

  void submit_all(int thread) {
    std::mt19937 dice(static_cast<unsigned>(thread));
    for (int i = thread; i < rules_.streams; i += rules_.threads) {
      {
        std::unique_lock lock(mutex_);
        wait(lock, [this] { return open_ < rules_.open; });
        ++open_;
        if (dice() % 4 == 0) streams_[static_cast<std::size_t>(i)].cancel_after = static_cast<int>(dice() % 8);
      }
      const Request request = rules_.request(i);
      const auto handle =
          engine_.submit(request, {[this, i](const ReplyPiece& piece) { on_piece(i, piece); },
                                   [this, i, request](const ReplyEnd& end) { on_end(i, request, end); }});
      CHECK(handle.is_ok(), "stream {}: {}", i, handle.message());
      bool now;
      {
        const std::lock_guard lock(mutex_);
        streams_[static_cast<std::size_t>(i)].handle = *handle;
        now = streams_[static_cast<std::size_t>(i)].cancel_after == 0;
      }
      if (now) engine_.cancel(*handle);
    }
  }

  void on_piece(int i, const ReplyPiece& piece) {
    ReplyHandle handle = 0;
    {
      const std::lock_guard lock(mutex_);
      Stream& stream = streams_[static_cast<std::size_t>(i)];
      stream.ids.insert(stream.ids.end(), piece.ids.begin(), piece.ids.end());
      if (static_cast<int>(stream.ids.size()) == stream.cancel_after) handle = stream.handle;
    }
    if (handle != 0) engine_.cancel(handle);
  }

  void on_end(int i, const Request& request, const ReplyEnd& end) {
    std::vector<TokenId> alone;
    if (rules_.alone) alone = rules_.alone(i, request);
    const std::lock_guard lock(mutex_);
    Stream& stream = streams_[static_cast<std::size_t>(i)];
    ++result_.ended;
    --open_;
    if (end.reason == FinishReason::kCancelled)
      ++result_.cancelled;
    else if (end.reason == FinishReason::kError && result_.failed++ == 0)
      result_.first_error = end.error;
    if (!alone.empty()) {
      const bool all = end.reason != FinishReason::kCancelled;
      if (all ? stream.ids != alone : !std::equal(stream.ids.begin(), stream.ids.end(), alone.begin())) ++result_.wrong;
    }
    std::vector<TokenId>().swap(stream.ids);
    changed_.notify_all();
  }

  Engine& engine_;
  const CrowdRules& rules_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Stream> streams_;
  CrowdResult result_;
  int open_ = 0;
};

}  // namespace

CrowdResult run_crowd(Engine& engine, const CrowdRules& rules) { return Crowd(engine, rules).run(); }

}  // namespace steadfast::test
