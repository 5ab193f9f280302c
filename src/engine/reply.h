// What a client asks of the engine and what it gets back: the border between engine and server.
// A reply is a function of its Request alone (design.md): nothing here names a batch, a page or a thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace steadfast {

// Applied in this order: bias, penalties, temperature, top-k, top-p, min-p, keyed draw (model-spec 9.1-9.3).
struct SamplingParams {
  float temperature = 1.0f;  // 0: greedy, ties to the lowest id
  int top_k = 0;             // 0: off
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::map<TokenId, float> logit_bias;
  std::uint64_t seed = 0;  // the stream's key; see default_seed for requests without one

  friend bool operator==(const SamplingParams&, const SamplingParams&) = default;
};

struct Request {
  std::vector<TokenId> prompt;  // at least one id, every id in the vocabulary
  SamplingParams sampling;
  int max_tokens = 0;             // 0: until the stream's window is full
  std::vector<TokenId> stop_ids;  // end the reply, besides the model's own; not part of its text
  std::vector<std::string> stop;  // stop strings: end the reply before their first occurrence
  bool ignore_eos = false;
  int top_logprobs = -1;    // -1: none; 0..20: of every token, from the raw logits
  bool background = false;  // when, not what: computed in what other streams leave, and set aside first
};

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0;
  std::vector<std::pair<TokenId, float>> top;  // descending
};

enum class FinishReason { kStop, kLength, kCancelled, kError };

// One piece of a reply as it is made. text holds whole characters only and never a part of a stop string.
struct ReplyPiece {
  std::vector<TokenId> ids;  // the ids committed with this piece; empty in the last piece of a held text
  std::string text;
  std::vector<TokenLogprob> logprobs;  // one for each id, if asked for
};

struct ReplyTimings {
  double queue_seconds = 0, prompt_seconds = 0, reply_seconds = 0;
  int prompt_tokens = 0, reply_tokens = 0;
};

// How a reply was made: what by the row law changes nothing in it.
struct ReplyPath {
  int page = 0;           // positions a page; 0: a whole window
  int prefix_rows = 0;    // found in kept prefixes, over all starts of the stream
  int prompt_pieces = 0;  // rounds that held rows of its prompt
  int rounds = 0;         // in all
  int rounds_shared = 0;  // beside other streams
  int set_aside = 0;      // times; computed again each time
};

struct ReplyEnd {
  FinishReason reason = FinishReason::kStop;
  std::string error;  // kError only: a sentence
  std::string stop;   // the stop string that matched, if one did
  ReplyTimings timings;
  ReplyPath path;
};

// Called from the engine's thread, in order; must not block. on_end comes last, exactly once.
struct ReplyHandler {
  std::function<void(const ReplyPiece&)> on_piece;
  std::function<void(const ReplyEnd&)> on_end;
};

// A key for a request that names none: a hash of its own content, so that a resend gives the same reply.
std::uint64_t default_seed(const Request& request);
// The key of choice number `index` (n > 1): index 0 is the seed itself.
std::uint64_t choice_seed(std::uint64_t seed, int index);

const char* to_string(FinishReason reason);  // OpenAI's word: "stop", "length", ...

}  // namespace steadfast
