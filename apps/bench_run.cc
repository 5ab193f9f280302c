// Requests run at once, their replies collected by the engine's thread.
#include "bench_run.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace steadfast {
namespace {

struct Collector {
  std::mutex mutex;
  std::condition_variable ended;
  std::vector<BenchReply> replies;
  int tokens = 0;
  std::size_t ends = 0;

  ReplyHandler handler(std::size_t index) {
    return {[this, index](const ReplyPiece& piece) {
              const std::lock_guard lock(mutex);
              auto& ids = replies[index].ids;
              ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
              tokens += static_cast<int>(piece.ids.size());
            },
            [this, index](const ReplyEnd& end) {
              const std::lock_guard lock(mutex);
              replies[index].end = end;
              ++ends;
              ended.notify_all();
            }};
  }
};

}  // namespace

Result<BenchRun> run_together(Engine& engine, std::span<const Request> requests,
                              const std::function<void(int tokens)>& progress) {
  Collector collector;
  collector.replies.resize(requests.size());
  Status refused = Status::ok();
  const auto start = std::chrono::steady_clock::now();
  std::size_t submitted = 0;
  for (; submitted < requests.size() && refused; ++submitted) {
    auto handle = engine.submit(requests[submitted], collector.handler(submitted));
    if (!handle) refused = handle.status();
  }
  if (!refused) --submitted;
  std::unique_lock lock(collector.mutex);
  const auto done = [&] { return collector.ends == submitted; };
  while (!collector.ended.wait_for(lock, std::chrono::milliseconds(200), done)) {
    const int tokens = collector.tokens;
    lock.unlock();
    progress(tokens);
    lock.lock();
  }
  if (!refused) return refused;
  BenchRun run;
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.replies = std::move(collector.replies);
  for (const BenchReply& reply : run.replies)
    if (reply.end.reason == FinishReason::kError) return Status::error("{}", reply.end.error);
  return run;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace steadfast
