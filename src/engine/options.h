// EngineOptions: how many streams, on which cache, under which budgets. None of them changes a reply.
#pragma once

#include <cstddef>

namespace steadfast {

struct EngineOptions {
  int streams = 1;            // that run at once; more wait
  bool paged = false;         // keys and values on pages of one pool, prefixes shared; else a whole window a stream
  int page = 256;             // positions a page
  bool prefixes = true;       // what streams computed is kept and serves others that begin alike
  int pool_pages = 0;         // 0: planned from streams, context and memory (memory_plan.h)
  int context = 0;            // positions a stream may hold; 0: the model's own, or as many as memory allows
  int row_budget = 0;         // rows a round; 0: the backend's usual number
  int piece = 0;              // the most rows of one prompt in a round (--chunk); 0: the budget
  double prompt_share = 0.5;  // of the time while replies run, for prompts (schedule/plan.h)
  std::size_t memory = 0;     // bytes that may be planned; 0: what the device has
};

}  // namespace steadfast
