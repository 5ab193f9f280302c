// Asks a Service for one reply and waits for its end: what commands do that have nothing else to do meanwhile.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/service.h"

namespace steadfast {

// The reply's end; on_piece is called from the engine's thread. An error of the request or of the reply is the
// Result's. Where stop is given it is asked twenty times a second, and once it says true the reply is cancelled.
inline Result<ReplyEnd> wait_reply(
    Service& service, Request request, std::function<void(const ReplyPiece&)> on_piece = [](const ReplyPiece&) {},
    const std::function<bool()>& stop = nullptr) {
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<ReplyEnd> end;
  ReplyHandler handler;
  handler.on_piece = std::move(on_piece);
  handler.on_end = [&](const ReplyEnd& last) {
    const std::lock_guard lock(mutex);
    end = last;
    ended.notify_all();
  };
  auto handle = service.submit(std::move(request), std::move(handler));
  if (!handle) return handle.status();
  std::unique_lock lock(mutex);
  const auto done = [&] { return end.has_value(); };
  if (stop) {
    while (!ended.wait_for(lock, std::chrono::milliseconds(50), done)) {
      if (stop()) service.cancel(*handle);
    }
  } else {
    ended.wait(lock, done);
  }
  if (end->reason == FinishReason::kError) return Status::error("{}", end->error);
  return *end;
}

}  // namespace steadfast
