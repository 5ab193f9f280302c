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
  ReplyPath path;
  bool began = false;
  bool ended = false;
  Clock::time_point submitted = Clock::now(), started, first_token;

  int pending() const { return static_cast<int>(tokens.size()) - done; }
};

}  // namespace steadfast
