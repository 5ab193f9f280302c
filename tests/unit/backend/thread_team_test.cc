// A team does every unit of every job exactly once, whatever its size, over thousands of jobs close together and apart.
#include "backend/cpu/thread_team.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

namespace steadfast::cpu {
namespace {

TEST(ThreadTeam, DoesEveryUnitExactlyOnce) {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadTeam team(threads);
    EXPECT_EQ(team.threads(), threads);
    for (int job = 0; job < 3000; ++job) {
      const int units = job % 23;
      std::vector<int> done(static_cast<std::size_t>(units), 0);  // plain: a unit done twice at once is a race too
      std::atomic<bool> strange{false};
      team.run(units, [&](int unit, int thread) {
        if (thread < 0 || thread >= threads) strange = true;
        done[static_cast<std::size_t>(unit)] += 1;
      });
      ASSERT_FALSE(strange);
      for (const int count : done) ASSERT_EQ(count, 1) << threads << " threads, job " << job;
    }
  }
}

TEST(ThreadTeam, SeesWhatTheCallerWroteAndTheCallerSeesTheResults) {
  ThreadTeam team(3);
  std::vector<int> values(64, 1);
  for (int job = 0; job < 2000; ++job) {
    team.run(64, [&](int unit, int) { values[static_cast<std::size_t>(unit)] += job; });
    const int sum = std::accumulate(values.begin(), values.end(), 0);
    ASSERT_EQ(sum % 64, 0);
    for (int& value : values) value = 1;  // the next job reads these
    ASSERT_EQ(sum, 64 * (1 + job));
  }
}

TEST(ThreadTeam, NoTwoUnitsShareAThreadsNumberAtOnce) {
  ThreadTeam team(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> clashes{0};
  for (int job = 0; job < 200; ++job) {
    team.run(16, [&](int, int thread) {
      auto& mine = inside[static_cast<std::size_t>(thread)];
      if (mine.fetch_add(1) != 0) ++clashes;
      std::this_thread::yield();
      mine.fetch_sub(1);
    });
  }
  EXPECT_EQ(clashes, 0);
}

TEST(ThreadTeam, WakesAfterSleep) {
  ThreadTeam team(4);
  for (int job = 0; job < 20; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than the workers spin
    std::atomic<int> sum{0};
    team.run(10, [&](int unit, int) { sum += unit; });
    ASSERT_EQ(sum, 45);
  }
}

TEST(ThreadTeam, StopsAtOnce) {
  for (int i = 0; i < 200; ++i) {
    ThreadTeam team(1 + i % 4);
    if (i % 2 == 0) team.run(3, [](int, int) {});
  }
}

}  // namespace
}  // namespace steadfast::cpu
