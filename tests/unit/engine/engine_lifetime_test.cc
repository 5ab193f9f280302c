// Streams end exactly once, whatever ends them: cancellation before and while they run, many submitters at once, and
// the engine's own end.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine_sample.h"

namespace steadfast::test {
namespace {

void expect_one_end(const Listener& listener) {
  EXPECT_EQ(listener.ends(), 1);
  EXPECT_FALSE(listener.spoke_after_end());
}

TEST(EngineCancel, EndsARunningStream) {
  const auto engine = tiny_engine();
  Listener listener;
  const auto handle = engine->submit(request_of({1, 2, 3}, 0), listener.handler());
  ASSERT_TRUE(handle);
  listener.wait_for_ids(3);
  engine->cancel(*handle);
  const ReplyEnd end = listener.wait();
  // The window is short: the stream may have filled it before the cancellation was read.
  if (end.reason == FinishReason::kLength) {
    EXPECT_EQ(listener.ids().size(), 125u);
  } else {
    EXPECT_EQ(end.reason, FinishReason::kCancelled);
  }
  expect_one_end(listener);
}

// A handler that blocks the engine's thread holds the first stream in place: what follows is certain, not likely.
class Gate {
 public:
  ReplyHandler around(Listener& listener) {
    ReplyHandler inner = listener.handler();
    return {[this, inner](const ReplyPiece& piece) {
              inner.on_piece(piece);
              std::unique_lock lock(mutex_);
              opened_.wait(lock, [&] { return open_; });
            },
            inner.on_end};
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

TEST(EngineCancel, EndsARunningStreamBeforeItsNextToken) {
  const auto engine = tiny_engine();
  Gate gate;
  Listener listener;
  const auto handle = engine->submit(request_of({1, 2, 3}, 0), gate.around(listener));
  ASSERT_TRUE(handle);
  listener.wait_for_ids(1);
  engine->cancel(*handle);
  gate.open();
  EXPECT_EQ(listener.wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(listener.ids().size(), 1u);
  expect_one_end(listener);
}

TEST(EngineCancel, EndsAWaitingStreamWithoutAToken) {
  const auto engine = tiny_engine({.streams = 1});
  Gate gate;
  Listener first, second, third;
  ASSERT_TRUE(engine->submit(request_of({1, 2, 3}, 5), gate.around(first)));
  first.wait_for_ids(1);
  const auto handle = engine->submit(request_of({4, 5}, 5), second.handler());
  ASSERT_TRUE(handle);
  ASSERT_TRUE(engine->submit(request_of({6}, 2), third.handler()));
  engine->cancel(*handle);
  gate.open();
  EXPECT_EQ(second.wait().reason, FinishReason::kCancelled);
  EXPECT_TRUE(second.ids().empty());
  EXPECT_EQ(first.wait().reason, FinishReason::kLength);
  EXPECT_EQ(third.wait().reason, FinishReason::kLength);
  for (const Listener* listener : {&first, &second, &third}) expect_one_end(*listener);
}

TEST(EngineCancel, IgnoresUnknownAndEndedHandles) {
  const auto engine = tiny_engine();
  engine->cancel(12345);
  Listener listener;
  const auto handle = engine->submit(request_of({1}, 2), listener.handler());
  ASSERT_TRUE(handle);
  EXPECT_EQ(listener.wait().reason, FinishReason::kLength);
  engine->cancel(*handle);
  EXPECT_EQ(reply_of(*engine, request_of({1}, 2)).end.reason, FinishReason::kLength);
  expect_one_end(listener);
}

TEST(EngineCancel, WorksFromAHandler) {
  const auto engine = tiny_engine();
  Listener listener;
  std::atomic<ReplyHandle> handle{0};
  ReplyHandler handler = listener.handler();
  const auto inner = handler.on_piece;
  handler.on_piece = [&, inner](const ReplyPiece& piece) {
    inner(piece);
    while (handle == 0) std::this_thread::yield();
    engine->cancel(handle);
  };
  const auto submitted = engine->submit(request_of({1, 2}, 50), handler);
  ASSERT_TRUE(submitted);
  handle = *submitted;
  EXPECT_EQ(listener.wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(listener.ids().size(), 1u);
}

TEST(EngineParallel, MoreRequestsThanStreamsAllEnd) {
  const auto engine = tiny_engine({.streams = 2});
  std::vector<Listener> listeners(20);
  for (std::size_t i = 0; i < listeners.size(); ++i)
    ASSERT_TRUE(
        engine->submit(request_of({static_cast<TokenId>(i), 5}, 3 + static_cast<int>(i % 4)), listeners[i].handler()));
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    EXPECT_EQ(listeners[i].wait().reason, FinishReason::kLength);
    EXPECT_EQ(listeners[i].ids().size(), 3 + i % 4);
    expect_one_end(listeners[i]);
  }
}

TEST(EngineParallel, ManySubmittersAndCancellersAtOnce) {
  const auto engine = tiny_engine({.streams = 4, .row_budget = 16});
  constexpr std::size_t kThreads = 6, kEach = 12;
  std::vector<Listener> listeners(kThreads * kEach);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kEach; ++i) {
        const auto id = static_cast<TokenId>(t * kEach + i);
        const auto handle = engine->submit(request_of({id, 3, id}, 6), listeners[t * kEach + i].handler());
        ASSERT_TRUE(handle);
        if (i % 3 == 0) engine->cancel(*handle);
        if (i % 4 == 0) {
          EXPECT_GE(engine->counters().requests, i + 1);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    const ReplyEnd end = listeners[i].wait();
    if (i % kEach % 3 != 0) {
      EXPECT_EQ(end.reason, FinishReason::kLength);
    }
    if (end.reason == FinishReason::kLength) {
      EXPECT_EQ(listeners[i].ids().size(), 6u);
    }
    expect_one_end(listeners[i]);
  }
  EXPECT_EQ(engine->counters().requests, kThreads * kEach);
}

TEST(EngineEnd, CancelsRunningAndWaitingStreamsOnce) {
  std::vector<Listener> listeners(10);
  {
    const auto engine = tiny_engine({.streams = 3});
    for (auto& listener : listeners) {
      ReplyHandler handler = listener.handler();
      const auto inner = handler.on_piece;
      handler.on_piece = [inner](const ReplyPiece& piece) {  // 124 tokens take longer than the engine has
        inner(piece);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      };
      ASSERT_TRUE(engine->submit(request_of({1, 2, 3, 4}, 0), handler));
    }
    listeners[0].wait_for_ids(1);
  }
  for (const Listener& listener : listeners) expect_one_end(listener);
  for (Listener& listener : listeners) EXPECT_EQ(listener.wait().reason, FinishReason::kCancelled);
  EXPECT_FALSE(listeners[0].ids().empty());
  EXPECT_TRUE(listeners[9].ids().empty());
}

TEST(EngineEnd, OfAnIdleEngineIsQuiet) {
  for (int i = 0; i < 5; ++i) {
    const auto engine = tiny_engine();
    if (i % 2 == 0) reply_of(*engine, request_of({1}, 1));
  }
}

}  // namespace
}  // namespace steadfast::test
