// Engine: repeats plan, forward, draw, commit for all streams on one thread. The server and the commands call Service.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "cache/prefix_index.h"
#include "engine/load_model.h"
#include "engine/service.h"
#include "rows/draw.h"

namespace steadfast {

struct EngineOptions {
  int streams = 1;       // that run at once; more wait
  bool paged = false;    // keys and values on pages of one pool, prefixes shared; else a whole window a stream
  int page = 256;        // positions a page
  int pool_pages = 0;    // 0: planned from streams, context and memory (planned_pages)
  int context = 0;       // positions a stream may hold; 0: the model's own
  int row_budget = 512;  // rows a round
  int piece = 0;         // the most rows of one prompt in a round (--chunk); 0: the budget
};

// Pages for `streams` windows of `context` positions, at most a quarter of the machine's memory, at least one window.
int planned_pages(const CacheShape& shape, int page, int streams, int context);

class Engine : public Service {
 public:
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<LoadedModel> loaded, const EngineOptions& options);
  ~Engine() override;

  const ModelCard& card() const override { return loaded_->card; }
  const Tokenizer* tokenizer() const override { return loaded_->tokenizer ? &*loaded_->tokenizer : nullptr; }
  const ChatTemplate* chat_template() const override {
    return loaded_->chat_template ? &*loaded_->chat_template : nullptr;
  }
  Result<ReplyHandle> submit(Request request, ReplyHandler handler) override;
  void cancel(ReplyHandle handle) override;
  ServiceCounters counters() const override;
  const LoadedModel& loaded() const { return *loaded_; }
  // For tests, while no stream runs: every page is free or kept.
  const PagePool* pool() const { return pool_.get(); }
  const PrefixIndex* prefixes() const { return prefixes_.get(); }
  // Called after each round with the prompt rows done and in all, for progress of long prompts; set before submitting.
  void on_progress(std::function<void(int done, int total)> progress) { progress_ = std::move(progress); }

 private:
  struct Stream;
  Engine(std::shared_ptr<LoadedModel> loaded, const EngineOptions& options);
  void loop();
  bool admit(std::unique_lock<std::mutex>& lock);
  void end(Stream& stream, FinishReason reason, std::string error);
  void run_round();
  Status draw_all(std::span<Stream* const> drawing);
  void commit(Stream& stream, Drawn& drawn);
  void deliver(Stream& stream, TokenId id, std::string text, std::vector<TokenLogprob> logprobs);
  void drop_ended();
  Status start_stream(Stream& stream);
  bool fits_now(const Stream& stream) const;
  bool reserve(Stream& stream, int rows);
  bool set_aside_newest(const Stream& needy);
  int rows_allowed(const Stream& stream, int rows) const;
  void keep_pages(Stream& stream, int before);
  void return_set_aside();
  void count_round(std::span<const std::pair<Stream*, int>> members);
  void count_memory();
  Status plan_pool();

  std::shared_ptr<LoadedModel> loaded_;
  EngineOptions options_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<PagePool> pool_;         // paged only
  std::unique_ptr<PrefixIndex> prefixes_;  // paged only; after the pool: freed first
  std::chrono::steady_clock::time_point memory_counted_;
  std::function<void(int, int)> progress_;

  mutable std::mutex mutex_;  // guards what follows, up to the thread
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Stream>> waiting_;
  std::set<ReplyHandle> cancelled_;
  ReplyHandle next_handle_ = 1;
  ServiceCounters counters_;
  bool stop_ = false;

  std::vector<std::unique_ptr<Stream>> running_;  // the engine thread's own
  std::thread thread_;
};

}  // namespace steadfast
