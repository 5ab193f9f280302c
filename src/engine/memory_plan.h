// The memory that an engine will take, computed before any of it is allocated: `info` and `serve` print it, and what
// does not fit is refused with what would. Pages come from one pool, so streams on pages do not each reserve a window.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/options.h"
#include "model/model.h"

namespace steadfast {

struct MemoryPlan {
  // As the engine will use them.
  int streams = 0, context = 0, rows = 0, logit_rows = 0;
  int page = 0, pages = 0;  // 0 without a pool
  // Bytes.
  std::size_t weights = 0;
  std::size_t workspace = 0;    // activations and logits of a round
  std::size_t windows = 0;      // whole: keys and values of every stream
  std::size_t pool = 0;         // paged: keys and values of all streams and kept prefixes
  std::size_t states = 0;       // recurrent states of every stream
  std::size_t kept_states = 0;  // the most that kept prefixes' recurrent states may take
  std::size_t memory = 0;       // there is

  std::size_t positions() const {  // of all caches together
    return pages > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page)
                     : static_cast<std::size_t>(streams) * static_cast<std::size_t>(context);
  }
  std::size_t total() const { return weights + workspace + windows + pool + states + kept_states; }
  // "memory: 1.2 GiB of 16.0 GiB: weights 600 MiB, ..."
  std::string sentence() const;
  nlohmann::ordered_json json() const;
};

// Refuses options out of range, and a plan that is larger than the memory.
Result<MemoryPlan> plan_memory(const Model& model, DType kv_dtype, const EngineOptions& options);

}  // namespace steadfast
