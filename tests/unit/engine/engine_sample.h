// What the engine tests share: a tiny model, engines on it, and listeners that record what a reply's owner was told.
#pragma once

#include <condition_variable>
#include <mutex>

#include "engine/engine.h"
#include "support/tiny_model.h"

namespace steadfast::test {

Tokenizer sample_tokenizer();  // of tests/golden/text

// with_tokenizer: the vocabulary is the sample tokenizer's, and the folder holds it.
std::unique_ptr<LoadedModel> load_tiny(bool with_tokenizer = false, std::vector<TokenId> eos = {});
std::unique_ptr<Engine> tiny_engine(const EngineOptions& options = {}, std::vector<TokenId> eos = {});

// Records a reply; may be waited for from another thread. Outlives the engine.
class Listener {
 public:
  ReplyHandler handler();
  ReplyEnd wait();                   // for the end
  void wait_for_ids(std::size_t n);  // or the end
  int ends() const;
  std::vector<TokenId> ids() const;
  std::string text() const;
  std::vector<TokenLogprob> logprobs() const;
  bool spoke_after_end() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TokenId> ids_;
  std::string text_;
  std::vector<TokenLogprob> logprobs_;
  std::optional<ReplyEnd> end_;
  int ends_ = 0;
  bool spoke_after_end_ = false;
};

Request request_of(std::vector<TokenId> prompt, int max_tokens, std::uint64_t seed = 1);

struct Reply {
  std::vector<TokenId> ids;
  std::string text;
  ReplyEnd end;
};
Reply reply_of(Engine& engine, Request request);

}  // namespace steadfast::test
