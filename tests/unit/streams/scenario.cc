// The clock of a scenario is the count of delivered pieces.
#include "scenario.h"

#include <algorithm>
#include <chrono>

namespace steadfast::test {
namespace {

constexpr std::chrono::seconds kHangs(60);

}  // namespace

Request request_of(std::vector<TokenId> prompt, int tokens, std::uint64_t seed, bool background) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.sampling.seed = seed;
  request.background = background;
  return request;
}

std::vector<std::string> memory_complaints(const Engine& engine, const fake::Ledger& ledger) {
  std::vector<std::string> all;
  const auto live = static_cast<std::size_t>(ledger.live_bytes());
  if (live > engine.memory().total())
    all.push_back(fmt::format("{} bytes are allocated, {} were planned", live, engine.memory().total()));
  const PagePool* pool = engine.pool();
  if (pool == nullptr) return all;
  const int kept = engine.prefixes()->kept();
  if (pool->free_pages() + kept != pool->pages())
    all.push_back(fmt::format("{} pages of {} are free and {} kept", pool->free_pages(), pool->pages(), kept));
  if (engine.prefixes()->evictable() != kept) all.push_back("a stream that ended holds a kept page");
  for (int page = 0; page < pool->pages(); ++page)
    if (pool->count(page) > 1) all.push_back(fmt::format("page {} is held {} times", page, pool->count(page)));
  return all;
}

Play::Play(const Scenario& scenario) : scenario_(scenario) {
  FakeModel model = fake_model(scenario.kind, scenario.max_positions);
  backend_ = model.backend;
  ledger_ = model.ledger;
  auto engine = Engine::create(std::move(model.loaded), scenario.options);
  CHECK(engine.is_ok(), "{}", engine.message());
  engine_ = std::move(*engine);
  backend_->watch(engine_->pool());
  outcomes_.resize(scenario_.arrivals.size());
  handles_.resize(scenario_.arrivals.size());
}

Play::~Play() = default;

void Play::run() {
  if (scenario_.arrivals.empty()) return;
  open_ = 1;  // held by this call: nobody sees an idle engine before the first is in
  submit(0);
  std::unique_lock lock(mutex_);
  if (--open_ == 0) {
    lock.unlock();
    arrive();
    lock.lock();
  }
  CHECK(changed_.wait_for(lock, kHangs, [&] { return done_; }), "the engine hangs: {} of {} arrived, {} open", next_,
        scenario_.arrivals.size(), open_);
  lock.unlock();
  wait_until_idle();
}

void Play::wait_until_idle() {
  const auto until = std::chrono::steady_clock::now() + kHangs;
  for (;;) {
    const ServiceCounters counters = engine_->counters();
    if (counters.streams_running == 0 && counters.streams_waiting == 0) return;
    CHECK(std::chrono::steady_clock::now() < until, "all ended, but {} run and {} wait", counters.streams_running,
          counters.streams_waiting);
    std::this_thread::yield();
  }
}

void Play::submit(std::size_t index) {
  {
    const std::lock_guard lock(mutex_);
    next_ = index + 1;
    ++open_;
    outcomes_[index].submitted = engine_->counters().rounds;
  }
  const auto handle = engine_->submit(scenario_.arrivals[index].request,
                                      {[this, index](const ReplyPiece& piece) { on_piece(index, piece); },
                                       [this, index](const ReplyEnd& end) { on_end(index, end); }});
  const std::lock_guard lock(mutex_);
  if (handle) {
    handles_[index] = *handle;
  } else {
    outcomes_[index].refusal = handle.message();
    --open_;
  }
}

// Submits what is due; with nothing left to wait for, what comes next.
void Play::arrive() {
  for (;;) {
    std::size_t index;
    {
      const std::lock_guard lock(mutex_);
      index = next_;
      if (index == scenario_.arrivals.size()) {
        done_ = open_ == 0;
        changed_.notify_all();
        return;
      }
      if (scenario_.arrivals[index].at > pieces_ && open_ > 0) return;
    }
    submit(index);
  }
}

void Play::on_piece(std::size_t index, const ReplyPiece& piece) {
  std::vector<ReplyHandle> cancelled;
  {
    const std::lock_guard lock(mutex_);
    Outcome& outcome = outcomes_[index];
    if (outcome.ids.empty()) outcome.first_token = engine_->counters().rounds;
    outcome.ids.insert(outcome.ids.end(), piece.ids.begin(), piece.ids.end());
    ++pieces_;
    for (std::size_t i = 0; i < next_; ++i)
      if (scenario_.arrivals[i].cancel == pieces_ && outcomes_[i].ends == 0) cancelled.push_back(handles_[i]);
  }
  for (const ReplyHandle handle : cancelled) engine_->cancel(handle);
  arrive();
}

void Play::on_end(std::size_t index, const ReplyEnd& end) {
  {
    const std::lock_guard lock(mutex_);
    ++outcomes_[index].ends;
    outcomes_[index].ended = engine_->counters().rounds;
    outcomes_[index].end = end;
    --open_;
  }
  arrive();
}

std::vector<std::string> Play::complaints() const {
  std::vector<std::string> all = memory_complaints(*engine_, *ledger_);
  for (const std::string& sentence : ledger_->sentences()) all.push_back(sentence);
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    const Request& request = scenario_.arrivals[i].request;
    const Outcome& outcome = outcomes_[i];
    const auto complain = [&](const std::string& what) { all.push_back(fmt::format("stream {} {}", i, what)); };
    const int room = engine_->card().window - static_cast<int>(request.prompt.size());
    if (outcome.refusal.empty() != (room > 0)) complain("should be " + std::string(room > 0 ? "taken" : "refused"));
    if (!outcome.refusal.empty()) continue;
    if (outcome.ends != 1) complain(fmt::format("ended {} times", outcome.ends));
    const int most = request.max_tokens > 0 ? std::min(request.max_tokens, room) : room;
    std::vector<TokenId> alone = fake_reply(scenario_.kind, request, most);
    const FinishReason reason = outcome.end ? outcome.end->reason : FinishReason::kError;
    if (reason == FinishReason::kCancelled && scenario_.arrivals[i].cancel >= 0)
      alone.resize(std::min(alone.size(), outcome.ids.size()));
    else if (reason != FinishReason::kLength)
      complain(fmt::format("ended by {}: {}", to_string(reason), outcome.end ? outcome.end->error : "never"));
    if (outcome.ids != alone) complain("differs from its solo run");
  }
  return all;
}

}  // namespace steadfast::test
