// The measurement behind `bench concurrent`: numbers of streams by temperatures by layouts, timed and compared.
#pragma once

#include <memory>

#include "bench_run.h"

namespace steadfast {

using Ids = std::vector<TokenId>;

// An engine to ask: "8", "8@65536", "8@65536:paged".
struct LevelSpec {
  int streams = 1;
  int context = 0;  // positions of a stream; 0: --context
  std::string kv;   // "whole" or "paged"; "": as --kv says
};
Result<LevelSpec> parse_level(const std::string& word);

struct ConcurrentOptions {
  ModelOptions model;
  std::vector<LevelSpec> levels;
  std::vector<float> temperatures = {0, 0.8f};
  int tokens = 300, reps = 3, context = 0;
  int requests = 0;  // sent at once; 0: as many as the level has streams
  std::string prompts;
  std::vector<int> prompt_tokens;  // lengths of prompts
  bool alone = false, serial = false, json = false;

  int requests_of(const LevelSpec& level) const { return requests > 0 ? requests : level.streams; }
  int most_requests() const;
};

// How many of the replies gave the ids of another way of asking; -1: not asked.
struct Same {
  int equal = -1;
  std::string first;  // the first difference
};

// Compares the replies' ids with those of the same requests asked in another way. Replies that differed once stay
// differing: `same` keeps the least number of equal ones and the first difference.
void count_same(std::span<const Ids> replies, std::span<const Ids> others, Same& same);

// Bytes before the first request.
struct IdleMemory {
  std::size_t device = 0;  // that the device says are in use (Backend::memory_used())
  MemoryPlan plan;         // that the engine will use
};

// One engine at one temperature on one layout; or, as a reference, each reply alone in a fresh engine of one stream.
struct Level {
  std::string kv;
  float temperature = 0;
  int streams = 0, context = 0, requests = 0;
  bool reference = false;
  IdleMemory idle;
  std::vector<double> rates, stream_rates, first_tokens, longest_first_tokens;  // one a repetition
  std::vector<Ids> ids;                                                         // of the last repetition, by request
  Same repeated, alone, serial, whole;
  double over_whole = 0;  // paged beside whole: the median of the repetitions' ratios

  // The comparisons that were made, by name.
  std::vector<std::pair<const char*, const Same*>> comparisons() const;
};

class Concurrent {
 public:
  // layouts: "whole", "paged" or both, in this order. prompts: as many as the most requests.
  Concurrent(const ConcurrentOptions& options, std::shared_ptr<LoadedModel> loaded, std::vector<Ids> prompts,
             std::vector<std::string> layouts);
  Status run();
  // Called when a level, or a reference, is measured and compared; set before run().
  void on_level(std::function<void(const Level&)> done) { on_level_ = std::move(done); }

  const std::vector<Level>& levels() const { return levels_; }
  // Each reply alone, one a temperature: on the first layout, in the first level's context. Empty without --alone.
  const std::vector<Level>& references() const { return references_; }
  const std::vector<Ids>& prompts() const { return prompts_; }
  const LoadedModel& loaded() const { return *loaded_; }
  // Where a level gives none.
  int context() const { return context_; }
  bool all_equal() const;

 private:
  Result<std::unique_ptr<Engine>> fresh_engine(const Level& level) const;
  std::vector<Level> levels_of(const LevelSpec& spec, float temperature) const;
  Request request_of(int index, float temperature) const;
  Result<BenchRun> ask(Engine& engine, std::span<const Request> requests);
  Status warm_up();
  Status run_alone(float temperature);
  Status run_level(const LevelSpec& spec, float temperature);
  Status run_repetition(Level& level, std::span<const Request> requests, bool last);
  void finish(Level level, std::vector<Level>& list);
  Status run_serially(Level& level, Engine& engine, std::span<const Request> requests);

  const ConcurrentOptions& options_;
  std::shared_ptr<LoadedModel> loaded_;
  std::vector<Ids> prompts_;
  std::vector<std::string> layouts_;
  std::vector<Level> levels_, references_;
  std::function<void(const Level&)> on_level_;
  ProgressBar bar_;
  int context_ = 0, done_ = 0, total_ = 0;  // tokens
};

}  // namespace steadfast
