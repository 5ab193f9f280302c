// One stream as the engine's thread sees it: a request, its tokens, where it stands. Internal to src/engine.
#pragma once

#include <chrono>

#include "engine/engine.h"
#include "engine/reply_writer.h"
#include "rows/draw.h"

namespace steadfast {

using Clock = std::chrono::steady_clock;

struct Engine::Stream {
  Stream(ReplyHandle stream_handle, Request r, ReplyHandler h, const Tokenizer* tokenizer)
      : handle(stream_handle),
        request(std::move(r)),
        handler(std::move(h)),
        tokens(request.prompt),
        writer(tokenizer, request.stop) {
    history.prompt = request.prompt;
  }

  ReplyHandle handle;
  Request request;
  ReplyHandler handler;
  std::vector<TokenId> tokens;  // prompt and reply
  int done = 0;                 // positions whose keys and values are stored
  int limit = 0;                // tokens that the reply may have
  History history;
  ReplyWriter writer;
  std::unique_ptr<StreamState> state;  // nullptr while waiting, or set aside
  int slot = -1;                       // of its window; -1: it has none
  bool failed = false;                 // a round of it failed: what it stored is not to be trusted
  ReplyPath path;
  int passed = 0;  // how often a younger stream started before it
  bool began = false;
  bool ended = false;
  Clock::time_point submitted = Clock::now(), started, first_token;

  // Others' streams go before the background's, in each the older first.
  bool before(const Stream& other) const {
    return std::pair(request.background, handle) < std::pair(other.request.background, other.handle);
  }
  // Its pending token is its reply's next one. A stream that is computed again, after it was set aside, is a prompt.
  bool replying() const { return !history.reply.empty() && pending() == 1; }
  // Positions whose rows are the prompt's.
  int prompt() const { return static_cast<int>(request.prompt.size()); }
  int pending() const { return static_cast<int>(tokens.size()) - done; }
};

}  // namespace steadfast
