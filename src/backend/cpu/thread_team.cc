// Workers spin for a short time (a forward has hundreds of jobs close together), then sleep until the next job.
#include "backend/cpu/thread_team.h"

namespace steadfast::cpu {
namespace {

constexpr int kSpins = 4000;  // about 50 microseconds: longer than the gap between two jobs of one forward

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadTeam::~ThreadTeam() {
  stop_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadTeam::take_units(int thread) {
  for (int unit = next_.fetch_add(1); unit < units_; unit = next_.fetch_add(1)) fn_(context_, unit, thread);
}

void ThreadTeam::run_units(int units, UnitFn fn, const void* context) {
  units_ = units;
  fn_ = fn;
  context_ = context;
  next_.store(0);
  left_.store(static_cast<int>(workers_.size()));
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  take_units(0);
  for (int spins = 0;; ++spins) {
    const int left = left_.load(std::memory_order_acquire);
    if (left == 0) return;
    if (spins < kSpins)
      pause_cpu();
    else
      left_.wait(left, std::memory_order_acquire);
  }
}

void ThreadTeam::work(int thread) {
  std::uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; generation_.load(std::memory_order_acquire) == seen; ++spins) {
      if (spins < kSpins)
        pause_cpu();
      else
        generation_.wait(seen, std::memory_order_acquire);
    }
    ++seen;
    if (stop_.load()) return;
    take_units(thread);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
  }
}

}  // namespace steadfast::cpu
