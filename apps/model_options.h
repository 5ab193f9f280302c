// The options that every command with a model shares, and what commands read and write: ids, timings, progress bars.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"
#include "engine/engine.h"

namespace steadfast {

struct ModelOptions {
  std::string model, device, act, prompt_act, kv = "whole", kv_dtype;
  int threads = 0, page = 256;
  bool no_graphs = false, timed = false;

  // MODEL, --device, --threads, --act, --prompt-act, --kv, --page, --kv-dtype.
  void add_to(CLI::App& command);
  // The options checked; without progress.
  Result<LoadOptions> load_options() const;
  // Positions of a page under --kv paged, 0 under --kv whole.
  Result<int> page_positions() const;
  // The cache's layout, after load_options() or page_positions() found it right.
  void apply(EngineOptions& options) const {
    options.paged = kv == "paged";
    options.page = page;
  }
  // Loads with a progress bar on a terminal.
  Result<std::unique_ptr<LoadedModel>> load() const;
};

// A JSON array of token ids.
Result<std::vector<TokenId>> read_ids(const std::string& path, int vocab_size);

// "label [####    ] done/total" on standard error, if that is a terminal; clear() wipes it.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  void show(int done, int total);
  void clear();

 private:
  std::string label_;
  bool terminal_;
  bool shown_ = false;
};

nlohmann::ordered_json to_json(const ReplyTimings& timings);

}  // namespace steadfast
