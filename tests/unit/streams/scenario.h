// A run of an engine on the fake backend that happens the same way each time: requests arrive and are cancelled when so
// many pieces of replies were delivered, on the engine's own thread. Then all that must hold of every run is checked.
#pragma once

#include <condition_variable>
#include <mutex>

#include "engine/engine.h"
#include "support/fake_model.h"

namespace steadfast::test {

struct Arrival {
  Request request;
  int at = 0;       // pieces delivered in all, before it is submitted
  int cancel = -1;  // pieces delivered in all, before it is cancelled; -1: never
};

struct Scenario {
  FakeKind kind = FakeKind::kDense;
  EngineOptions options;
  std::vector<Arrival> arrivals;  // by `at`
  int max_positions = 4096;
};

struct Outcome {
  std::vector<TokenId> ids;
  std::optional<ReplyEnd> end;
  std::string refusal;                                      // a sentence, if it was not taken
  std::uint64_t submitted = 0, first_token = 0, ended = 0;  // rounds
  int ends = 0;
};

class Play {
 public:
  explicit Play(const Scenario& scenario);
  ~Play();
  // Runs all of it, waits for an idle engine; a run that hangs ends the process with a message.
  void run();
  // What must hold of every run and does not: a reply that is not its request's, a fault, a leak.
  std::vector<std::string> complaints() const;

  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  Engine& engine() { return *engine_; }
  fake::FakeBackend& backend() { return *backend_; }
  const fake::Ledger& ledger() const { return *ledger_; }

 private:
  void submit(std::size_t index);
  void arrive();
  void on_piece(std::size_t index, const ReplyPiece& piece);
  void on_end(std::size_t index, const ReplyEnd& end);
  void wait_until_idle();

  Scenario scenario_;
  fake::FakeBackend* backend_ = nullptr;
  std::shared_ptr<fake::Ledger> ledger_;
  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Outcome> outcomes_;  // until all have ended: the engine thread's own, but for the first submission
  std::vector<ReplyHandle> handles_;
  std::size_t next_ = 0, open_ = 0;
  int pieces_ = 0;
  bool done_ = false;
};

Request request_of(std::vector<TokenId> prompt, int tokens, std::uint64_t seed, bool background = false);

// Of an idle engine: no stream holds a page, all that is not free is kept, nothing beyond the plan is allocated.
std::vector<std::string> memory_complaints(const Engine& engine, const fake::Ledger& ledger);

}  // namespace steadfast::test
