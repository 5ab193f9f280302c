// Prompts begin alike in families, so that pages are shared; pools are small, so that streams are set aside.
#include "properties.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>

#include "scenario.h"

namespace steadfast::test {
namespace {

struct StreamPlan {
  int family = 0, shared = 0, tail = 0, tokens = 0;  // of the prompt, and of the reply
  int wait = 0, cancel = -1;                         // pieces after the arrival before it; pieces after its own arrival
  bool background = false, greedy = false;
};

struct RunPlan {
  bool hybrid = false, paged = false;
  int page = 16, pool = 8, streams = 1, budget = 8, piece = 0, share = 50;
  std::vector<StreamPlan> arrivals;
};

std::ostream& operator<<(std::ostream& out, const StreamPlan& s) {
  return out << fmt::format("{{family {}, {} shared + {}, reply {}, wait {}, cancel {}{}{}}}", s.family, s.shared,
                            s.tail, s.tokens, s.wait, s.cancel, s.background ? ", background" : "",
                            s.greedy ? ", greedy" : "");
}

std::ostream& operator<<(std::ostream& out, const RunPlan& r) {
  out << fmt::format(
      "{}, {}, page {}, pool {}, streams {}, budget {}, piece {}, share {}%:", r.hybrid ? "hybrid" : "dense",
      r.paged ? "paged" : "whole", r.page, r.pool, r.streams, r.budget, r.piece, r.share);
  for (const StreamPlan& stream : r.arrivals) out << "\n  " << stream;
  return out;
}

template <typename Value>
auto below(Value first, Value end) {
  return rc::gen::resize(100, rc::gen::inRange<Value>(first, end));  // all of the range, however small the run
}

rc::Gen<StreamPlan> any_stream() {
  return rc::gen::build<StreamPlan>(
      rc::gen::set(&StreamPlan::family, below(0, 3)), rc::gen::set(&StreamPlan::shared, below(0, 70)),
      rc::gen::set(&StreamPlan::tail, below(1, 60)), rc::gen::set(&StreamPlan::tokens, below(1, 40)),
      rc::gen::set(&StreamPlan::wait, rc::gen::weightedOneOf<int>({{2, rc::gen::just(0)}, {1, below(0, 30)}})),
      rc::gen::set(&StreamPlan::cancel, rc::gen::weightedOneOf<int>({{3, rc::gen::just(-1)}, {1, below(0, 60)}})),
      rc::gen::set(&StreamPlan::background, rc::gen::weightedElement<bool>({{3, false}, {1, true}})),
      rc::gen::set(&StreamPlan::greedy, rc::gen::arbitrary<bool>()));
}

rc::Gen<RunPlan> any_run() {
  return rc::gen::build<RunPlan>(
      rc::gen::set(&RunPlan::hybrid, rc::gen::arbitrary<bool>()),
      rc::gen::set(&RunPlan::paged, rc::gen::weightedElement<bool>({{1, false}, {4, true}})),
      rc::gen::set(&RunPlan::page, rc::gen::element(16, 32, 64)), rc::gen::set(&RunPlan::pool, below(2, 24)),
      rc::gen::set(&RunPlan::streams, below(1, 9)), rc::gen::set(&RunPlan::budget, rc::gen::element(1, 3, 16, 64, 512)),
      rc::gen::set(&RunPlan::piece, rc::gen::element(0, 0, 1, 7, 50)),
      rc::gen::set(&RunPlan::share, rc::gen::element(1, 10, 50, 100)),
      rc::gen::set(&RunPlan::arrivals, rc::gen::container<std::vector<StreamPlan>>(any_stream())));
}

Scenario scenario_of(const RunPlan& run) {
  Scenario scenario;
  scenario.kind = run.hybrid ? FakeKind::kHybrid : FakeKind::kDense;
  scenario.max_positions = 160;
  scenario.options = {.streams = run.streams,
                      .paged = run.paged,
                      .page = run.page,
                      .pool_pages = run.paged ? run.pool : 0,
                      .row_budget = run.budget,
                      .piece = run.piece,
                      .prompt_share = run.share / 100.0};
  int at = 0;
  for (const StreamPlan& stream : run.arrivals) {
    std::vector<TokenId> prompt;
    for (int i = 0; i < stream.shared; ++i) prompt.push_back((i * i + 5 * stream.family) % kFakeVocab);
    const int salt = static_cast<int>(scenario.arrivals.size());
    for (int i = 0; i < stream.tail; ++i) prompt.push_back((11 * i + 3 * salt) % kFakeVocab);
    at += stream.wait;
    Arrival arrival;
    arrival.request = request_of(std::move(prompt), stream.tokens, static_cast<std::uint64_t>(salt), stream.background);
    if (stream.greedy) arrival.request.sampling.temperature = 0;
    arrival.at = at;
    arrival.cancel = stream.cancel < 0 ? -1 : at + stream.cancel;
    scenario.arrivals.push_back(std::move(arrival));
  }
  return scenario;
}

// Rounds until the last first token: with half of a hundredth of the time for prompts, at least one prompt row comes in
// 29 rounds; each token is computed once for its stream and perhaps again when it was set aside, by no more streams
// than there are.
std::uint64_t most_rounds(const Scenario& scenario) {
  std::uint64_t tokens = 0;
  for (const Arrival& arrival : scenario.arrivals)
    tokens += arrival.request.prompt.size() + static_cast<std::size_t>(arrival.request.max_tokens);
  return 100 + 30 * tokens * (1 + scenario.arrivals.size());
}

}  // namespace

void check_random_runs(int cases, int size) {
  rc::detail::TestParams params;
  params.seed = 20240607;
  params.maxSuccess = cases;
  params.maxSize = size;
  rc::detail::TestMetadata metadata;
  metadata.id = metadata.description = "random runs";
  const auto result = rc::detail::checkTestable(
      [] {
        const RunPlan run = *any_run().as("run");
        const Scenario scenario = scenario_of(run);
        Play play(scenario);
        play.run();
        const auto complaints = play.complaints();
        if (!complaints.empty()) RC_FAIL(fmt::format("{}", fmt::join(complaints, "\n")));
        RC_ASSERT(play.engine().counters().rounds <= most_rounds(scenario));
        RC_CLASSIFY(play.engine().counters().streams_set_aside > 0, "set aside");
        RC_CLASSIFY(play.engine().counters().prompt_tokens_reused > 0, "prefixes reused");
      },
      metadata, params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  std::printf("%s\n", text.str().c_str());
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>());
}

}  // namespace steadfast::test
