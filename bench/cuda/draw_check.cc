// Checks and times the draw on the card: ids and log-probabilities against rows/draw.h on the same logits, each row
// alone against all together, replayed graphs against launches, ties to the lowest id; controls that must be seen.
// Usage: draw_check; exit status 1 if anything failed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <string_view>

#include "backend/cuda/draw.h"

namespace steadfast::bench {
namespace {

int failures = 0;

void report(bool ok, const std::string& what) {
  fmt::print("{} {}\n", ok ? "ok    " : "FAILED", what);
  if (!ok) ++failures;
}

void must(const Status& status) {
  if (status) return;
  fmt::print("{}\n", status.message());
  std::exit(2);
}

struct Case {
  const char* name;
  SamplingParams sampling;
  int top_logprobs = -1;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&all](const char* name, auto change, int top = -1) {
    SamplingParams sampling;
    change(sampling);
    all.push_back({name, sampling, top});
  };
  add("greedy", [](SamplingParams& s) { s.temperature = 0; });
  add("plain", [](SamplingParams&) {});
  add("temperature 0.7", [](SamplingParams& s) { s.temperature = 0.7f; });
  add("top-k 20", [](SamplingParams& s) { s.top_k = 20; });
  add("top-k 1", [](SamplingParams& s) { s.top_k = 1; });
  add("top-p 0.8", [](SamplingParams& s) { s.top_p = 0.8f; });
  add("top-p 0", [](SamplingParams& s) { s.top_p = 0; });
  add("min-p 0.05", [](SamplingParams& s) { s.min_p = 0.05f; });
  add("all filters", [](SamplingParams& s) { s.temperature = 0.6f, s.top_k = 50, s.top_p = 0.9f, s.min_p = 0.02f; });
  add("penalties", [](SamplingParams& s) {
    s.repetition_penalty = 1.2f, s.presence_penalty = 0.4f, s.frequency_penalty = 0.3f;
    s.logit_bias = {{7, 4.0f}, {11, -100.0f}, {1 << 30, 3.0f}};
  });
  add(
      "greedy, log-probabilities", [](SamplingParams& s) { s.temperature = 0; }, 5);
  add(
      "all, log-probabilities", [](SamplingParams& s) { s.temperature = 0.8f, s.top_p = 0.9f, s.presence_penalty = 1; },
      20);
  return all;
}

struct Card {
  std::unique_ptr<cuda::Recorder> recorder;
  float* logits = nullptr;
  cuda::DrawResult* results = nullptr;

  Card(int rows, int vocab) {
    cuda::RecorderOptions options;
    options.arena_bytes = 1 << 20;
    options.scratch_bytes = cuda::draw_scratch_bytes(rows, vocab);
    auto made = cuda::Recorder::create(0, options);
    if (!made) must(made.status());
    recorder = std::move(*made);
    const auto count = static_cast<std::size_t>(rows);
    must(cuda::cuda_status(cudaMalloc(reinterpret_cast<void**>(&logits), count * static_cast<std::size_t>(vocab) * 4),
                           "cudaMalloc"));
    must(cuda::cuda_status(cudaMalloc(reinterpret_cast<void**>(&results), count * sizeof(cuda::DrawResult)),
                           "cudaMalloc"));
  }
  ~Card() {
    cudaFree(logits);
    cudaFree(results);
  }

  std::vector<cuda::DrawResult> draw(const std::vector<float>& host, int width, std::span<const DrawJob> jobs) {
    const int rows = static_cast<int>(jobs.size());
    must(cuda::cuda_status(cudaMemcpy(logits, host.data(), host.size() * 4, cudaMemcpyHostToDevice), "upload"));
    cudaMemset(results, 0xFF, jobs.size() * sizeof(cuda::DrawResult));
    cudaDeviceSynchronize();
    cuda::draw(*recorder, Matrix(logits, rows, width), jobs, results);
    must(recorder->run());
    must(recorder->wait());
    std::vector<cuda::DrawResult> back(jobs.size());
    must(cuda::cuda_status(
        cudaMemcpy(back.data(), results, back.size() * sizeof(cuda::DrawResult), cudaMemcpyDeviceToHost), "download"));
    return back;
  }
};

std::vector<float> random_logits(int rows, int vocab, float spread, unsigned seed) {
  std::mt19937 dice(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> all(static_cast<std::size_t>(rows) * static_cast<std::size_t>(vocab));
  for (float& x : all) x = normal(dice);
  return all;
}

double worst_logprob(const cuda::DrawResult& got, const TokenLogprob& want) {
  double worst = std::abs(static_cast<double>(got.logprob) - static_cast<double>(want.logprob));
  if (got.top_count != static_cast<int>(want.top.size())) return INFINITY;
  for (std::size_t i = 0; i < want.top.size(); ++i) {
    if (got.top_ids[i] != want.top[i].first) return INFINITY;
    worst =
        std::max(worst, std::abs(static_cast<double>(got.top_logprobs[i]) - static_cast<double>(want.top[i].second)));
  }
  return worst;
}

// All cases at once over `rows` rows in turn, against the host, and each row alone.
void check(Card& card, int rows, int vocab, int width, float spread) {
  const auto kinds = cases();
  History history;
  for (int i = 0; i < 50; ++i) history.prompt.push_back(i * 37 % vocab);
  for (int i = 0; i < 30; ++i) history.reply.push_back(i * i % vocab);
  const auto logits = random_logits(rows, width, spread, static_cast<unsigned>(rows + vocab));
  std::vector<SamplingParams> sampling;
  std::vector<DrawJob> jobs;
  for (int r = 0; r < rows; ++r) {
    sampling.push_back(kinds[static_cast<std::size_t>(r) % kinds.size()].sampling);
    sampling.back().seed = 1000 + static_cast<std::uint64_t>(r);
  }
  for (int r = 0; r < rows; ++r)
    jobs.push_back({&sampling[static_cast<std::size_t>(r)], &history, 17 + r, vocab,
                    kinds[static_cast<std::size_t>(r) % kinds.size()].top_logprobs});
  int wrong = 0, alone_differs = 0, replay_differs = 0;
  double worst = 0;
  const auto got = card.draw(logits, width, jobs);
  for (int again = 0; again < 3; ++again) {  // launches, capture, replay
    const auto same = card.draw(logits, width, jobs);
    for (std::size_t r = 0; r < jobs.size(); ++r) replay_differs += same[r].id != got[r].id;
  }
  DrawScratch scratch;
  for (std::size_t r = 0; r < jobs.size(); ++r) {
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(r * static_cast<std::size_t>(width));
    std::vector<float> row(begin, begin + vocab);
    const std::vector<float> raw = row;
    apply_penalties(row, sampling[r], history);
    const TokenId id = draw(row, sampling[r], jobs[r].position, scratch);
    if (id != got[r].id) {
      ++wrong;
      fmt::print("  row {}, {}: {} on the card, {} on the host\n", r, kinds[r % kinds.size()].name, got[r].id, id);
    }
    if (jobs[r].top_logprobs >= 0)
      worst = std::max(worst, worst_logprob(got[r], log_probability(raw, id, jobs[r].top_logprobs)));
    const std::vector<float> own(begin, begin + width);
    alone_differs += card.draw(own, width, {&jobs[r], 1})[0].id != got[r].id;
  }
  const std::string where = fmt::format("{} rows of {}, deviation {}", rows, vocab, spread);
  report(wrong == 0, fmt::format("{}: {} ids differ from the host's", where, wrong));
  report(alone_differs == 0, fmt::format("{}: {} rows differ alone", where, alone_differs));
  report(replay_differs == 0, fmt::format("{}: {} rows differ in a replayed graph", where, replay_differs));
  report(worst < 1e-5, fmt::format("{}: log-probabilities within {:.2g}", where, worst));
}

// Equal largest values: the lowest id; top-k keeps all that tie, top-p drops the highest ids first.
void check_ties(Card& card, int vocab) {
  std::vector<float> logits(static_cast<std::size_t>(vocab), -5.0f);
  for (const int id : {9, 300, 301, vocab - 1}) logits[static_cast<std::size_t>(id)] = 3.0f;
  const History history;
  SamplingParams greedy;
  greedy.temperature = 0;
  const DrawJob job{&greedy, &history, 5, vocab, -1};
  report(card.draw(logits, vocab, {&job, 1})[0].id == 9, "greedy ties go to the lowest id");
  DrawScratch scratch;
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SamplingParams sampling;
    sampling.seed = seed;
    sampling.top_p = seed % 2 == 0 ? 0.45f : 1.0f;
    sampling.top_k = seed % 3 == 0 ? 2 : 0;
    std::vector<float> row = logits;
    const TokenId id = draw(row, sampling, 5, scratch);
    const DrawJob one{&sampling, &history, 5, vocab, -1};
    wrong += card.draw(logits, vocab, {&one, 1})[0].id != id;
  }
  report(wrong == 0, fmt::format("ties under filters: {} of 200 differ from the host", wrong));
}

void times(int vocab) {
  for (const int rows : {1, 8, 64}) {
    Card card(rows, vocab);
    const auto logits = random_logits(rows, vocab, 2, 3);
    must(
        cuda::cuda_status(cudaMemcpy(card.logits, logits.data(), logits.size() * 4, cudaMemcpyHostToDevice), "upload"));
    for (const Case& kind : cases()) {
      const History history;
      const std::vector<DrawJob> jobs(static_cast<std::size_t>(rows),
                                      {&kind.sampling, &history, 5, vocab, kind.top_logprobs});
      constexpr int kTimes = 20;
      auto begin = std::chrono::steady_clock::now();
      for (int i = -3; i < kTimes; ++i) {
        if (i == 0) {
          must(card.recorder->wait());
          begin = std::chrono::steady_clock::now();
        }
        cuda::draw(*card.recorder, Matrix(card.logits, rows, vocab), jobs, card.results);
        must(card.recorder->run());
      }
      must(card.recorder->wait());
      const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
      fmt::print("time   {:2} rows of {}: {:<28} {:7.1f} us a draw, chained\n", rows, vocab, kind.name,
                 taken.count() / kTimes);
    }
  }
}

// For compute-sanitizer.
int run_smallest() {
  Card card(24, 5000);
  check(card, 1, 1000, 1024, 1);
  check(card, 24, 4900, 5000, 2);
  fmt::print("{} failed\n", failures);
  return failures == 0 ? 0 : 1;
}

int run() {
  {
    Card card(64, 248320);
    check(card, 1, 1000, 1024, 1);
    check(card, 24, 49152, 49152, 3);
    check(card, 64, 248077, 248320, 2);
    check(card, 24, 248320, 248320, 0.01f);
    check_ties(card, 100000);
    // Control: a logit moved above the winner must change the id.
    const History history;
    SamplingParams greedy;
    greedy.temperature = 0;
    auto logits = random_logits(1, 5000, 1, 4);
    const DrawJob job{&greedy, &history, 5, 5000, -1};
    const int before = card.draw(logits, 5000, {&job, 1})[0].id;
    logits[4321] = 100;
    report(before != 4321 && card.draw(logits, 5000, {&job, 1})[0].id == 4321, "control: a planted winner is seen");
  }
  times(248320);
  fmt::print("{} failed\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace steadfast::bench

int main(int argc, char** argv) {
  const bool smallest = argc > 1 && std::string_view(argv[1]) == "smallest";
  return smallest ? steadfast::bench::run_smallest() : steadfast::bench::run();
}
