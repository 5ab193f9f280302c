// The queue between the engine and a connection: order, bounds, and the count of streams.
#include "server/reply_queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace steadfast {
namespace {

using namespace std::chrono_literals;

ReplyEvent piece(int choice, const std::string& text) {
  ReplyEvent event;
  event.choice = choice;
  event.piece.text = text;
  return event;
}

TEST(ReplyQueue, KeepsTheOrder) {
  ReplyQueue queue(1 << 20);
  EXPECT_FALSE(queue.pop(0ms));
  for (int i = 0; i < 3; ++i) queue.push(piece(i, std::to_string(i)));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.pop(0ms)->piece.text, std::to_string(i));
  EXPECT_FALSE(queue.pop(0ms));
}

TEST(ReplyQueue, DropsPastItsBoundButNeverTheEnd) {
  ReplyQueue queue(2000);
  queue.push(piece(0, std::string(1000, 'x')));
  EXPECT_FALSE(queue.overflowed());
  queue.push(piece(0, std::string(1000, 'x')));
  EXPECT_TRUE(queue.overflowed());
  queue.push(piece(0, "small"));
  ReplyEvent end;
  end.end = ReplyEnd{};
  queue.push(end);
  EXPECT_EQ(queue.pop(0ms)->piece.text.size(), 1000U);
  EXPECT_TRUE(queue.pop(0ms)->end);
  EXPECT_FALSE(queue.pop(0ms));
}

TEST(ReplyQueue, ReadingMakesRoom) {
  ReplyQueue queue(2000);
  for (int i = 0; i < 100; ++i) {
    queue.push(piece(0, std::string(1000, 'x')));
    ASSERT_TRUE(queue.pop(0ms));
  }
  EXPECT_FALSE(queue.overflowed());
}

TEST(ReplyQueue, WakesAWaitingReader) {
  ReplyQueue queue(1 << 20);
  std::thread writer([&] { queue.push(piece(1, "x")); });
  EXPECT_EQ(queue.pop(60s)->choice, 1);
  writer.join();
}

TEST(StreamCount, NeverPassesItsBound) {
  StreamCount count(10);
  EXPECT_FALSE(count.take(11));
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        if (!count.take(3)) continue;
        EXPECT_LE(taken += 3, 10);
        taken -= 3;
        count.give_back(3);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(count.take(10));
}

}  // namespace
}  // namespace steadfast
