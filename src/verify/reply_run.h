// Replies of an engine to many requests: all at once or one joining after another, some cancelled on the way.
#pragma once

#include <span>
#include <vector>

#include "engine/engine.h"

namespace steadfast {

struct Reply {
  std::vector<TokenId> ids;
  std::vector<float> logprobs;  // of each id, where the request asks for top_logprobs
  FinishReason reason = FinishReason::kError;
};

struct Asking {
  int apart = 0;         // tokens that replies must have had in all between one request and the next; 0: all at once
  int cancel_every = 0;  // of so many requests the last is cancelled, when it has had `cancel_after` tokens; 0: none
  int cancel_after = 2;

  bool cancels(std::size_t request) const {
    return cancel_every > 0 &&
           request % static_cast<std::size_t>(cancel_every) + 1 == static_cast<std::size_t>(cancel_every);
  }
};

// Waits for all replies. An error of a reply is the Result's.
Result<std::vector<Reply>> ask(Engine& engine, std::span<const Request> requests, const Asking& asking);

}  // namespace steadfast
