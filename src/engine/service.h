// Service: the engine as the server sees it. The real one runs rounds on a model; tests may use another.
#pragma once

#include <memory>

#include "engine/reply.h"
#include "text/chat_template.h"

namespace steadfast {

using ReplyHandle = std::uint64_t;

// Of docs/arithmetic.md: raised by a change of any bit of any reply.
inline constexpr int kArithmeticVersion = 1;

// What, beside the weights and the request, a reply's bits depend on.
struct Arithmetic {
  std::string target;                     // Backend::target(): "cpu"
  std::string act, prompt_act, kv_dtype;  // --act, --prompt-act and --kv-dtype as used
  int version = kArithmeticVersion;
};

struct ModelCard {
  std::string name;    // as /v1/models lists it: the folder's or file's name
  std::string family;  // "llama", "qwen3", ...
  std::string digest;  // of the weights, hexadecimal
  Arithmetic arithmetic;
  int vocab_size = 0;
  int window = 0;            // positions a stream can hold (--context)
  std::int64_t created = 0;  // seconds since 1970: the weight file's time
  SamplingParams defaults;   // from generation_config.json where there is one
  std::vector<TokenId> eos_ids;
};

struct ServiceCounters {
  std::uint64_t requests = 0, prompt_tokens = 0, reply_tokens = 0;
  std::uint64_t prompt_tokens_reused = 0;  // found in kept prefixes
  std::uint64_t streams_set_aside = 0;     // for want of pages; computed again later
  std::uint64_t rounds = 0, rows = 0;      // computed
  int streams_running = 0, streams_waiting = 0;
  int pages_free = 0, pages_in_use = 0;  // --kv paged; in use: by a stream
  int pages_kept = 0;                    // by kept prefixes alone
  std::uint64_t kept_state_bytes = 0;    // recurrent states of kept prefixes
};

class Service {
 public:
  virtual ~Service() = default;
  virtual const ModelCard& card() const = 0;
  virtual const Tokenizer* tokenizer() const = 0;         // nullptr: the folder has none
  virtual const ChatTemplate* chat_template() const = 0;  // nullptr: the model has none
  // Refuses (a sentence) what can never run: empty prompt, unknown id, more positions than the window.
  virtual Result<ReplyHandle> submit(Request request, ReplyHandler handler) = 0;
  // Ends the reply soon, with kCancelled; unknown handles are ignored.
  virtual void cancel(ReplyHandle handle) = 0;
  virtual ServiceCounters counters() const = 0;
};

}  // namespace steadfast
