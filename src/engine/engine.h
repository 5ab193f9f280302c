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
#include "cache/window_slots.h"
#include "engine/load_model.h"
#include "engine/memory_plan.h"
#include "engine/options.h"
#include "engine/service.h"
#include "rows/draw.h"
#include "schedule/plan.h"

namespace steadfast {

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
  const MemoryPlan& memory() const { return memory_; }
  // For tests, while no stream runs: every page is free or kept.
  const PagePool* pool() const { return pool_.get(); }
  const PrefixIndex* prefixes() const { return prefixes_.get(); }
  const WindowSlots* windows() const { return windows_.get(); }
  // Called after each round with the prompt rows done and in all, for progress of long prompts; set before submitting.
  void on_progress(std::function<void(int done, int total)> progress) { progress_ = std::move(progress); }

 private:
  struct Stream;
  using Streams = std::deque<std::unique_ptr<Stream>>;
  Engine(std::shared_ptr<LoadedModel> loaded, const EngineOptions& options, const MemoryPlan& plan);
  Status make_pool();
  void make_windows();
  void loop();
  void end(Stream& stream, FinishReason reason, std::string error);
  void drop_ended();

  // engine.cc: a round.
  void run_round();
  void choose_rows(Round& round, std::vector<std::pair<Stream*, int>>& members, std::vector<Stream*>& drawing);
  Status draw_all(std::span<Stream* const> drawing);
  void commit(Stream& stream, Drawn& drawn);
  void deliver(Stream& stream, TokenId id, std::string text, std::vector<TokenLogprob> logprobs);

  // engine_admission.cc: who runs. Functions that take the lock may let go of it for a while.
  bool admit(std::unique_lock<std::mutex>& lock);
  void end_cancelled(std::unique_lock<std::mutex>& lock);
  int next_waiting();
  void start(std::unique_lock<std::mutex>& lock, int index);
  bool fits_now(const Stream& stream);
  bool set_aside_background();
  bool set_aside_last(const Stream& needy);
  void set_aside(Stream& stream);
  void return_set_aside();
  static void insert(Streams& streams, std::unique_ptr<Stream> stream);

  // engine_memory.cc: what a stream holds.
  Status start_stream(Stream& stream);
  Status start_on_pages(Stream& stream, int positions);
  Status start_in_window(Stream& stream, int positions);
  void release(Stream& stream, bool usable);
  int pages_for(const Stream& stream) const;
  // Of a stream's tokens, those whose kept rows are told from a reply's; all where both roles have one arithmetic.
  int prompt_tokens(const Stream& stream) const;
  bool reserve(Stream& stream, int rows);
  int rows_to_border(const Stream& stream) const;
  void keep_prefix(Stream& stream, int before);
  void keep_pages(Stream& stream, int before);
  void count_round(std::span<const std::pair<Stream*, int>> members);
  void count_memory();

  std::shared_ptr<LoadedModel> loaded_;
  EngineOptions options_;
  MemoryPlan memory_;
  RoundPlanner planner_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<PagePool> pool_;         // paged only
  std::unique_ptr<PrefixIndex> prefixes_;  // paged only; after the pool: freed first
  std::unique_ptr<WindowSlots> windows_;   // whole only
  std::chrono::steady_clock::time_point memory_counted_;
  std::function<void(int, int)> progress_;

  mutable std::mutex mutex_;  // guards what follows, up to the thread
  std::condition_variable wake_;
  Streams waiting_;  // both lines in order of precedence (Stream::before)
  std::set<ReplyHandle> cancelled_;
  ReplyHandle next_handle_ = 1;
  ServiceCounters counters_;
  bool stop_ = false;

  Streams running_;  // the engine thread's own
  std::thread thread_;
};

}  // namespace steadfast
