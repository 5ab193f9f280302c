// The engine's thread fills the replies; the asking thread waits for tokens to submit and to cancel.
#include "verify/reply_run.h"

#include <condition_variable>
#include <mutex>

namespace steadfast {
namespace {

class ReplyRun {
 public:
  ReplyRun(Engine& engine, std::span<const Request> requests, const Asking& asking)
      : engine_(engine), requests_(requests), asking_(asking), replies_(requests.size()), ended_(requests.size()) {}

  Result<std::vector<Reply>> run() {
    std::vector<ReplyHandle> handles;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (asking_.apart > 0) wait_for_tokens(i);
      auto handle = engine_.submit(requests_[i], handler(i));
      if (!handle) {
        refuse(i, handle.message());
        handles.push_back(0);
      } else {
        handles.push_back(*handle);
      }
    }
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (asking_.cancels(i)) cancel(i, handles[i]);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return left_ == 0; });
    if (!failure_) return failure_;
    return std::move(replies_);
  }

 private:
  ReplyHandler handler(std::size_t i) {
    ReplyHandler handler;
    handler.on_piece = [this, i](const ReplyPiece& piece) {
      const std::lock_guard lock(mutex_);
      Reply& reply = replies_[i];
      reply.ids.insert(reply.ids.end(), piece.ids.begin(), piece.ids.end());
      for (const TokenLogprob& token : piece.logprobs) reply.logprobs.push_back(token.logprob);
      tokens_ += piece.ids.size();
      changed_.notify_all();
    };
    handler.on_end = [this, i](const ReplyEnd& end) {
      const std::lock_guard lock(mutex_);
      replies_[i].reason = end.reason;
      finish(i, end.reason == FinishReason::kError ? end.error : "");
    };
    return handler;
  }

  void finish(std::size_t i, const std::string& error) {
    if (!error.empty() && failure_) failure_ = Status::error("{}", error);
    ended_[i] = true;
    --left_;
    changed_.notify_all();
  }

  void refuse(std::size_t i, const std::string& error) {
    const std::lock_guard lock(mutex_);
    finish(i, error);
  }

  // Until `apart` tokens a submitted request have come, or every submitted reply has ended.
  void wait_for_tokens(std::size_t submitted) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return tokens_ >= submitted * static_cast<std::size_t>(asking_.apart) || left_ == requests_.size() - submitted;
    });
  }

  void cancel(std::size_t i, ReplyHandle handle) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(
          lock, [&] { return ended_[i] || replies_[i].ids.size() >= static_cast<std::size_t>(asking_.cancel_after); });
    }
    engine_.cancel(handle);
  }

  Engine& engine_;
  std::span<const Request> requests_;
  Asking asking_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Reply> replies_;
  std::vector<bool> ended_;
  std::size_t left_ = requests_.size(), tokens_ = 0;
  Status failure_;
};

}  // namespace

Result<std::vector<Reply>> ask(Engine& engine, std::span<const Request> requests, const Asking& asking) {
  return ReplyRun(engine, requests, asking).run();
}

}  // namespace steadfast
