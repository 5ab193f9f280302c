// The measurement behind `bench concurrent`: numbers of streams by temperatures by layouts, timed and compared.
#pragma once

#include <map>
#include <memory>

#include "bench_run.h"

namespace steadfast {

using Ids = std::vector<TokenId>;

struct ConcurrentOptions {
  ModelOptions model;
  std::vector<int> levels = {1, 4, 8};  // numbers of streams
  std::vector<float> temperatures = {0, 0.8f};
  int tokens = 300, reps = 3, context = 0;
  std::string prompts;
  bool alone = false, serial = false, json = false;
};

// How many of the streams gave the ids of another way of asking; -1: not asked.
struct Same {
  int equal = -1;
  std::string first;  // the first difference
};

// Compares the streams' ids with those of the same streams asked in another way. Streams that differed once stay
// differing: `same` keeps the least number of equal ones and the first difference.
void count_same(std::span<const Ids> streams, std::span<const Ids> others, Same& same);

// One number of streams at one temperature on one layout.
struct Level {
  std::string kv;
  float temperature = 0;
  int streams = 0;
  std::vector<double> rates, stream_rates, first_tokens, longest_first_tokens;  // one a repetition
  std::vector<Ids> ids;                                                         // of the last repetition
  Same repeated, alone, serial, whole;
  double over_whole = 0;  // paged beside whole: the median of the repetitions' ratios

  // The comparisons that were made, by name.
  std::vector<std::pair<const char*, const Same*>> comparisons() const;
};

class Concurrent {
 public:
  // layouts: "whole", "paged" or both, in this order. prompts: as many as the most streams.
  Concurrent(const ConcurrentOptions& options, std::shared_ptr<LoadedModel> loaded, std::vector<Ids> prompts,
             std::vector<std::string> layouts);
  Status run();

  const std::vector<Level>& levels() const { return levels_; }
  const std::vector<Ids>& prompts() const { return prompts_; }
  const LoadedModel& loaded() const { return *loaded_; }
  int context() const { return context_; }
  bool all_equal() const;

 private:
  Result<std::unique_ptr<Engine>> fresh_engine(const std::string& kv, int streams) const;
  Request request_of(int index, float temperature) const;
  Result<BenchRun> ask(Engine& engine, std::span<const Request> requests);
  Status warm_up();
  Status run_level(float temperature, int streams);
  Status run_repetition(Level& level, std::span<const Request> requests, bool last);
  Status run_serially(Level& level, Engine& engine, std::span<const Request> requests);
  Result<std::vector<Ids>> alone(const std::string& kv, float temperature, std::span<const Request> requests);

  const ConcurrentOptions& options_;
  std::shared_ptr<LoadedModel> loaded_;
  std::vector<Ids> prompts_;
  std::vector<std::string> layouts_;
  std::map<std::pair<std::string, float>, std::vector<Ids>> alone_;
  std::vector<Level> levels_;
  ProgressBar bar_;
  int context_ = 0, done_ = 0, total_ = 0;  // tokens
};

}  // namespace steadfast
