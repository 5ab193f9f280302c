// A team of threads that share out the units of one job at a time. Which thread does a unit never changes its bits:
// each unit writes its own results (row law). The calling thread works too; jobs come from one thread at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace steadfast::cpu {

class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);  // at least 1
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // fn(unit, thread) for every unit in [0, units); returns when all are done.
  template <typename Fn>
  void run(int units, Fn&& fn) {
    if (units <= 0) return;
    if (units == 1 || workers_.empty()) {
      for (int unit = 0; unit < units; ++unit) fn(unit, 0);
      return;
    }
    using Plain = std::remove_reference_t<Fn>;
    const UnitFn call = [](const void* context, int unit, int thread) {
      (*const_cast<Plain*>(static_cast<const Plain*>(context)))(unit, thread);
    };
    run_units(units, call, &fn);
  }

 private:
  using UnitFn = void (*)(const void* context, int unit, int thread);
  void run_units(int units, UnitFn fn, const void* context);
  void work(int thread);
  void take_units(int thread);

  // A job is published by raising generation_; next_ hands out its units; left_ counts workers still inside.
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<int> next_{0};
  alignas(64) std::atomic<int> left_{0};
  alignas(64) std::atomic<bool> stop_{false};
  int units_ = 0;
  UnitFn fn_ = nullptr;
  const void* context_ = nullptr;
  std::vector<std::thread> workers_;
};

// fn(row) for every row, in blocks shared out among the threads where there are enough rows to be worth waking them.
template <typename Fn>
void over_rows(ThreadTeam& team, int rows, Fn fn) {
  constexpr int kRowsAlone = 8;
  if (rows < kRowsAlone) {
    for (int row = 0; row < rows; ++row) fn(row);
    return;
  }
  const int units = std::min(rows, team.threads() * 4);
  team.run(units, [&](int unit, int) {
    const int first = static_cast<int>(static_cast<std::int64_t>(rows) * unit / units);
    const int last = static_cast<int>(static_cast<std::int64_t>(rows) * (unit + 1) / units);
    for (int row = first; row < last; ++row) fn(row);
  });
}

}  // namespace steadfast::cpu
