// draw: ids equal to rows/draw.h's on the host from the same logits, each row alone and beside others, under every
// filter; log-probabilities of the drawn id and of the largest, within a bound of float64: roundings of x, of the
// largest logit and of the result (4 of each), a sum of exponentials each within 2^-21 and, on CUDA, cut below 2^-38.
#include <algorithm>
#include <cmath>

#include "contract/row_op.h"

namespace steadfast::contract {
namespace {

struct Filter {
  std::string name;
  SamplingParams sampling;
  int top = -1;
};

std::vector<Filter> filters() {
  std::vector<Filter> all(12);
  for (const std::size_t i : {0u, 10u}) all[i].sampling.temperature = 0;
  all[2].sampling.temperature = 0.7f;
  all[3].sampling.top_k = 20;
  all[4].sampling.top_k = 1;
  all[5].sampling.top_p = 0.8f;
  all[6].sampling.top_p = 0;
  all[7].sampling.min_p = 0.05f;
  SamplingParams& every = all[8].sampling;
  every.temperature = 0.6f, every.top_k = 50, every.top_p = 0.9f, every.min_p = 0.02f;
  SamplingParams& penalties = all[9].sampling;
  penalties.repetition_penalty = 1.2f, penalties.presence_penalty = 0.4f, penalties.frequency_penalty = 0.3f;
  penalties.logit_bias = {{7, 4.0f}, {11, -100.0f}, {1 << 30, 3.0f}};
  all[10].top = 5;
  SamplingParams& logged = all[11].sampling;
  logged.temperature = 0.8f, logged.top_p = 0.9f, logged.presence_penalty = 1;
  all[11].top = 20;
  return all;
}

class Check {
 public:
  Check(Context& context, const Case& of)
      : context_(context), rows_(of.number("rows")), vocab_(of.number("vocab")), width_(vocab_ + of.number("padding")) {
    RoundLimits limits;
    limits.rows = limits.logit_rows = rows_;
    limits.vocab = width_;
    reserve(context, limits);
    make_logits(of.text("logits"));
    for (int i = 0; i < 50; ++i) history_.prompt.push_back(i * 37 % vocab_);
    for (int i = 0; i < 30; ++i) history_.reply.push_back(i * i % vocab_);
    const auto kinds = filters();
    for (int row = 0; row < rows_; ++row) {
      const Filter& filter = kinds[static_cast<std::size_t>(row) % kinds.size()];
      sampling_.push_back(filter.sampling);
      sampling_.back().seed = 1000 + static_cast<std::uint64_t>(row);
      tops_.push_back(filter.top);
    }
  }

  void run(Gates& gates) {
    expect();
    std::vector<std::vector<Drawn>> runs;
    compare(context_.backend, "alone", 1, gates);
    for (const int together : {7, rows_})
      compare(context_.backend, fmt::format("{} together", together), together, gates);
    compare(context_.backend, "again", rows_, gates);
    for (const Schedule& schedule : context_.schedules)
      if (schedule.only.empty() && schedule.most_rows >= rows_) compare(*schedule.backend, schedule.name, rows_, gates);
    gates.within("log-probabilities against float64", worst_.worst());
    check_controls(gates);
  }

  std::function<void()> timed_call() {
    auto device = std::make_shared<OutputRows>(context_.backend, rows_, width_, 0);
    device->fill(logits_, rows_);
    return [this, device] {
      std::vector<Drawn> drawn(static_cast<std::size_t>(rows_));
      const auto jobs = jobs_of(0, rows_);
      need(context_.backend.draw(device->matrix(rows_), jobs, drawn));
    };
  }
  double bytes() const { return 4.0 * rows_ * vocab_; }

 private:
  void make_logits(const std::string& kind) {
    const auto width = static_cast<std::size_t>(width_);
    const float spread = kind == "flat" ? 0.01f : 3.0f;
    logits_ = random_rows(rows_, width_, 50);
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      logits_[i] *= spread;
      if (kind == "ties") logits_[i] = std::nearbyint(logits_[i]);           // many equal ones
      if (i % width >= static_cast<std::size_t>(vocab_)) logits_[i] = 1000;  // padding, never drawn
    }
  }

  std::span<const float> row(const std::vector<float>& logits, int r) const {
    return std::span(logits).subspan(static_cast<std::size_t>(r) * static_cast<std::size_t>(width_),
                                     static_cast<std::size_t>(vocab_));
  }

  void expect() {
    DrawScratch scratch;
    for (int r = 0; r < rows_; ++r) {
      const auto from = row(logits_, r);
      std::vector<float> values(from.begin(), from.end());
      apply_penalties(values, sampling_[static_cast<std::size_t>(r)], history_);
      expected_.push_back(steadfast::draw(values, sampling_[static_cast<std::size_t>(r)], 17 + r, scratch));
    }
  }

  std::vector<DrawJob> jobs_of(int first, int count) const {
    std::vector<DrawJob> jobs;
    for (int r = first; r < first + count; ++r)
      jobs.push_back(
          {&sampling_[static_cast<std::size_t>(r)], &history_, 17 + r, vocab_, tops_[static_cast<std::size_t>(r)]});
    return jobs;
  }

  std::vector<Drawn> draw_rows(Backend& backend, const std::vector<float>& logits, int first, int count, bool& damage) {
    OutputRows device(backend, count, width_, 0);
    const auto at = logits.begin() + static_cast<std::ptrdiff_t>(first) * width_;
    device.fill({at, at + static_cast<std::ptrdiff_t>(count) * width_}, count);
    std::vector<Drawn> drawn(static_cast<std::size_t>(count));
    const auto jobs = jobs_of(first, count);
    need(backend.draw(device.matrix(count), jobs, drawn));
    device.take(count, damage);
    return drawn;
  }

  void compare(Backend& backend, const std::string& what, int together, Gates& gates) {
    for (int first = 0; first < rows_; first += together) {
      const int count = std::min(together, rows_ - first);
      bool damage = false;
      const auto drawn = draw_rows(backend, logits_, first, count, damage);
      gates.untouched(what, damage);
      for (int i = 0; i < count; ++i) {
        const auto got = static_cast<float>(drawn[static_cast<std::size_t>(i)].id);
        const auto want = static_cast<float>(expected_[static_cast<std::size_t>(first + i)]);
        gates.equal(fmt::format("{}, id of row {}", what, first + i), &got, &want, 1, 1);
        check_logprob(first + i, drawn[static_cast<std::size_t>(i)].logprob);
      }
    }
  }

  void check_logprob(int r, const std::optional<TokenLogprob>& got) {
    const int top = tops_[static_cast<std::size_t>(r)];
    if (top < 0) return;
    const auto x = row(logits_, r);
    const double peak = static_cast<double>(*std::max_element(x.begin(), x.end()));
    double sum = 0;
    for (const float value : x) sum += std::exp(static_cast<double>(value) - peak);
    const auto add = [&](TokenId id, float logprob) {
      const double value = static_cast<double>(x[static_cast<std::size_t>(id)]), exact = value - peak - std::log(sum);
      const double bound = 4 * kRoundoff * (std::fabs(value) + std::fabs(peak) + std::fabs(exact)) + 0x1p-21 +
                           (is_cuda(context_.arithmetic) ? vocab_ * 0x1p-38 : 0);
      worst_.add(static_cast<double>(logprob), exact, bound);
    };
    if (!got || got->id != expected_[static_cast<std::size_t>(r)] ||
        static_cast<int>(got->top.size()) != std::min(top, vocab_))
      return worst_.add(1, 0, 0);
    add(got->id, got->logprob);
    std::vector<TokenId> order(x.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(got->top.size()), order.end(),
                      [&x](TokenId a, TokenId b) {
                        const float u = x[static_cast<std::size_t>(a)], v = x[static_cast<std::size_t>(b)];
                        return u != v ? u > v : a < b;
                      });
    for (std::size_t i = 0; i < got->top.size(); ++i) {
      if (got->top[i].first != order[i]) worst_.add(1, 0, 0);
      add(got->top[i].first, got->top[i].second);
    }
  }

  bool any_differs(const std::vector<float>& logits) {
    bool damage = false;
    const auto drawn = draw_rows(context_.backend, logits, 0, rows_, damage);
    for (int r = 0; r < rows_; ++r)
      if (drawn[static_cast<std::size_t>(r)].id != expected_[static_cast<std::size_t>(r)]) return true;
    return false;
  }

  void check_controls(Gates& gates) {
    std::vector<float> planted = logits_;  // the last logit before the padding wins: a tail dropped would lose it
    planted[static_cast<std::size_t>(vocab_ - 1)] = 100;
    gates.control("a winner planted in the tail", any_differs(planted));
    const auto seeds = sampling_;
    bool red = false;  // few rows may draw alike from several seeds
    for (int turn = 0; turn < 20 && !red; ++turn) {
      for (SamplingParams& one : sampling_) ++one.seed;
      red = any_differs(logits_);
    }
    gates.control("other seeds", red);
    sampling_ = seeds;
  }

  Context& context_;
  int rows_, vocab_, width_;
  std::vector<float> logits_;
  History history_;
  std::vector<SamplingParams> sampling_;
  std::vector<int> tops_;
  std::vector<TokenId> expected_;
  Share worst_;
};

void check(Context& context, const Case& of, Gates& gates) { Check(context, of).run(gates); }

std::vector<Timed> timed(Context& context, const Case& of) {
  auto held = std::make_shared<Check>(context, of);
  const auto call = held->timed_call();
  return {{fmt::format("{} rows of {}", of.number("rows"), of.number("vocab")), {held->bytes(), 0}, [held, call] {
             call();
           }}};
}

}  // namespace

Kernel draw_kernel() {
  return {"draw",
          "ids drawn from logits under every filter, and their log-probabilities",
          {{"rows", 2, 1024, {}},
           {"vocab", 32, 1 << 20, {}},
           {"padding", 0, 4096, {}},
           {"logits", 0, -1, {"spread", "flat", "ties"}}},
          {"ids as rows/draw.h draws them", "each row alone = beside others", "log-probabilities within float64",
           "padding and canaries"},
          {"a winner planted in the tail", "other seeds"},
          check,
          timed};
}

}  // namespace steadfast::contract
