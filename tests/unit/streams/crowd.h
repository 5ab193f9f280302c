// Many streams through one engine from several threads, some of them cancelled at random: each ends once, and right.
#pragma once

#include <functional>

#include "engine/engine.h"

namespace steadfast::test {

struct CrowdResult {
  int ended = 0, cancelled = 0, wrong = 0, failed = 0;
  std::string first_error;
};

struct CrowdRules {
  int streams = 1000, threads = 2, open = 100;  // streams in all; submitters; submitted and not ended
  std::function<Request(int)> request;          // of stream i
  std::function<std::vector<TokenId>(int, const Request&)> alone;  // its reply; empty: not compared
};

// Ends the process with a message if nothing ends for a minute.
CrowdResult run_crowd(Engine& engine, const CrowdRules& rules);

}  // namespace steadfast::test
