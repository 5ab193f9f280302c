// linear: every form of weights, alone and beside others, after a prologue, with bias and residual; with --prompt-act
// the rows are a prompt's.
#include <cmath>

#include "contract/reference/linear.h"
#include "contract/row_op.h"

namespace steadfast::contract {
namespace {

using Kind = LinearInput::Kind;
constexpr float kEps = 1e-6f;
constexpr int kHeadDim = 32;  // of a gated norm's heads

const std::vector<std::string> kPrologues = {"plain", "rms_norm", "silu_mul", "sigmoid_mul", "gated_norm"};

// CUDA's rule of slices (docs/arithmetic.md), and its steps of 16 inputs.
int cuda_steps(int out, int in) {
  const int chunks = 2 * ((in + 127) / 128);
  const int slices = out >= 16384 || chunks < 8 ? 1 : chunks < 16 ? 2 : 4;
  return (in + 15) / 16 + slices;
}

struct Job {
  Job(Context& context, const WeightForm& form, int in, std::uint64_t seed, bool with_bias)
      : reader(form, in, seed),
        weight(reader.pack(context.backend)),
        bias(context.backend, random_rows(1, form.out, seed + 6)),
        has_bias(with_bias) {}
  RandomWeight reader;
  std::unique_ptr<Weight> weight;
  DeviceVector bias;
  bool has_bias;
};

class Problem {
 public:
  Problem(Context& context, const Case& of)
      : context_(context),
        rows_(of.number("rows")),
        in_(of.number("in")),
        fine_(of.is("fine", "yes")),
        adds_(of.is("epilogue", "bias+add")),
        arithmetic_(context.prompts.value_or(context.arithmetic)),
        kind_(kind_of(of.text("prologue"))),
        x_(context.backend, random_rows(rows_, in_, 77), in_),
        other_(context.backend, random_rows(rows_, in_, 78), in_),
        made_(context.backend, rows_, in_, 0),
        norm_(context.backend, random_floats(static_cast<std::size_t>(in_), 2, 79)) {
    const auto forms = need(parse_weights(of.text("weights"), in_));
    if (kind_ == Kind::kGatedNorm && in_ % kHeadDim != 0)
      need(Status::error("a gated norm needs whole heads of {} inputs, not {}", kHeadDim, in_));
    std::uint64_t seed = static_cast<std::uint64_t>(in_);
    RoundLimits limits;
    limits.rows = rows_;
    limits.widest = in_;
    reserve(context, limits);
    for (const WeightForm& form : forms) {
      jobs_.push_back(std::make_unique<Job>(context, form, in_, seed += 1000, !of.is("epilogue", "plain")));
      width_ += form.out;
    }
    make_rows();
  }

  // All jobs' outputs side by side are one row.
  RowOp op() {
    RowOp op;
    op.rows = rows_;
    op.width = width_;
    op.kernel = "linear";
    op.gap = 5;  // no stride that kernels might like
    op.reference_rows = 0;
    if (adds_) op.before = random_rows(rows_, width_, 99);
    before_ = op.before;
    op.run = [this](Backend& backend, int first, const Matrix& out) {
      const auto jobs = jobs_for(out);
      backend.linear(input(first, out.rows), jobs);
    };
    return op;
  }

  // Features and rows in proportion to what they cost; all of small cases.
  double share(const std::vector<float>& got, int rows) const {
    Share share;
    const auto row_list = sampled(rows, width_ * static_cast<std::int64_t>(in_) > 1 << 20 ? 3 : 8);
    int first = 0;
    for (const auto& job : jobs_) {
      const WeightForm& form = job->reader.form();
      const bool behind = factor_behind(form);
      std::vector<LinearRow> x;
      std::vector<double> factors;
      for (const int row : row_list) {
        const auto at = static_cast<std::ptrdiff_t>(row) * in_;
        const float* made = (behind ? rows_gained_ : rows_made_).data() + at;
        x.push_back(linear_row(made, in_, form, arithmetic_, fine_));
        factors.push_back(behind ? norm_factor(x_.host().data() + at) : 1.0);
      }
      for (const int feature : sampled(form.out, in_ > 1024 ? 48 : 256)) {
        const auto weights = linear_feature(job->reader, feature, arithmetic_);
        const double bias = job->has_bias ? static_cast<double>(job->bias.host[static_cast<std::size_t>(feature)]) : 0;
        for (std::size_t i = 0; i < row_list.size(); ++i) {
          const auto at = static_cast<std::size_t>(row_list[i]) * static_cast<std::size_t>(width_) +
                          static_cast<std::size_t>(first + feature);
          const double add = adds_ ? static_cast<double>(before_[at]) : 0;
          const Exact exact =
              behind ? normed_value(linear_value(x[i], weights, form, arithmetic_, cuda_steps(form.out, in_), 0, 0),
                                    factors[i], bias, add)
                     : linear_value(x[i], weights, form, arithmetic_, cuda_steps(form.out, in_), bias, add);
          share.add(static_cast<double>(got[at]), exact.value, exact.bound);
        }
      }
      first += form.out;
    }
    return share.worst();
  }

  // The product of the rows that the prologue's own op made has the same bits; not where a norm's factor is behind it.
  void check_prologue(Gates& gates, const std::vector<float>& alone, const RowOp& fused) {
    if (kind_ == Kind::kPlain) return;
    for (const auto& job : jobs_)
      if (factor_behind(job->reader.form())) return;
    RowOp plain = fused;
    plain.run = [this](Backend& backend, int first, const Matrix& out) {
      const auto jobs = jobs_for(out);
      backend.linear(made_.matrix(first, out.rows), jobs);
    };
    make_on_device();
    OutputRows out(context_.backend, rows_, width_, plain.gap);
    bool damage = false;
    const auto got = run_rows(context_.backend, plain, out, 0, rows_, damage);
    gates.equal("prologue in one op against its own op", got.data(), alone.data(), rows_, width_);
  }

  void check_controls(Gates& gates, const RowOp& op, const std::vector<float>& alone) {
    const int rows = std::min(rows_, 8);
    if (rows > 1) {
      std::vector<float> swapped = x_.host();
      std::swap_ranges(swapped.begin(), swapped.begin() + in_, swapped.begin() + in_);
      x_.change(swapped);
      gates.control("two rows swapped", differs(context_, op, alone, rows));
    }
    std::vector<float> cut = x_.host();
    for (int row = 0; row < rows; ++row)
      for (int k = in_ - 16; k < in_; ++k) cut[static_cast<std::size_t>(row * in_ + k)] = 0;
    x_.change(cut);
    gates.control("the last inputs dropped", again(op, rows) > 1);
    x_.mend();
    Job& job = *jobs_[0];
    int loud = 0;  // where the code shows most
    for (int k = 1; k < in_; ++k)
      if (std::fabs(rows_made_[static_cast<std::size_t>(k)]) > std::fabs(rows_made_[static_cast<std::size_t>(loud)]))
        loud = k;
    RandomWeight planted = job.reader;
    planted.plant(0, loud);
    auto weight = planted.pack(context_.backend);
    std::swap(job.weight, weight);
    gates.control("a weight's code changed", again(op, 1) > 1 && differs(context_, op, alone, 1));
    std::swap(job.weight, weight);
    gates.equal("mended", rerun(op, rows).data(), alone.data(), rows, width_);
  }

  LinearInput input(int first, int rows) const {
    const Matrix x = x_.matrix(first, rows), other = other_.matrix(first, rows), made = made_.matrix(first, rows);
    if (kind_ == Kind::kPlain) return {kind_, x, {}, nullptr, 0, 0, 0, x};
    const int heads = kind_ == Kind::kGatedNorm ? in_ / kHeadDim : 0;
    return {kind_, x, other, norm_.device(), kEps, heads, kHeadDim, made};
  }

  std::vector<LinearJob> jobs_for(const Matrix& out) const {
    std::vector<LinearJob> jobs;
    int first = 0;
    for (const auto& job : jobs_) {
      const int width = job->reader.form().out;
      LinearJob one;
      one.weight = job->weight.get();
      one.out = out.columns(first, width);
      one.bias = job->has_bias ? job->bias.device() : nullptr;
      one.add = adds_ ? one.out.data : nullptr;
      one.fine = fine_;
      one.prompt = context_.prompts.has_value();
      jobs.push_back(one);
      first += width;
    }
    return jobs;
  }

 private:
  static Kind kind_of(const std::string& name) {
    for (std::size_t i = 0; i < kPrologues.size(); ++i)
      if (kPrologues[i] == name) return static_cast<Kind>(i);
    CHECK(false, "prologue {}", name);
  }

  void make_on_device() {
    const LinearInput input = this->input(0, rows_);
    Backend& backend = context_.backend;
    made_.poison(rows_);
    switch (kind_) {
      case Kind::kRmsNorm:
        return backend.rms_norm(input.x, input.weight, input.eps, input.made);
      case Kind::kSiluMul:
        return backend.silu_mul(input.x, input.other, input.made);
      case Kind::kSigmoidMul:
        return backend.sigmoid_mul(input.x, input.other, input.made);
      case Kind::kGatedNorm:
        return backend.gated_norm(input.x, input.other, input.heads, input.dim, input.weight, input.eps, input.made);
      case Kind::kPlain:
        break;
    }
  }

  // CUDA's bf16 linears read x times a norm's weight, and multiply the sums by the norm's factor.
  bool factor_behind(const WeightForm& form) const {
    return kind_ == Kind::kRmsNorm &&
           (arithmetic_ == Arithmetic::kCuda || (arithmetic_ == Arithmetic::kCudaInt8 && form.dense()));
  }
  double norm_factor(const float* x) const {
    double squares = 0;
    for (int k = 0; k < in_; ++k) squares += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    return 1.0 / std::sqrt(squares / in_ + static_cast<double>(kEps));
  }
  // The factor's own error: 16 roundings of a strip's and 32 lanes' tree, chains of in / 512, quotient and root; then
  // the product, and two sums.
  Exact normed_value(const Exact& sum, double factor, double bias, double add) const {
    const double product = sum.value * factor, total = product + bias + add;
    const double roundings = 16 + in_ / 512.0 + 8;
    const double own =
        (std::fabs(product) * roundings + 3 * (std::fabs(bias) + std::fabs(add) + std::fabs(total))) * 0x1p-24;
    return {total, sum.bound * factor * (1 + 0x1p-18) + own};
  }

  // What the product reads, on the host: a prologue's rows come from its own op, which has its own line in the
  // contract.
  void make_rows() {
    rows_made_ = rows_gained_ = x_.host();
    if (kind_ == Kind::kRmsNorm)
      for (std::size_t i = 0; i < rows_gained_.size(); ++i)
        rows_gained_[i] *= norm_.host[i % static_cast<std::size_t>(in_)];
    if (kind_ == Kind::kPlain) return;
    make_on_device();
    bool damage = false;
    rows_made_ = made_.take(rows_, damage);
  }

  std::vector<float> rerun(const RowOp& op, int rows) const {
    OutputRows out(context_.backend, rows, width_, op.gap);
    bool damage = false;
    return run_rows(context_.backend, op, out, 0, rows, damage);
  }
  double again(const RowOp& op, int rows) const { return share(rerun(op, rows), rows); }

  Context& context_;
  int rows_, in_, width_ = 0;
  bool fine_, adds_;
  Arithmetic arithmetic_;
  Kind kind_;
  InputRows x_, other_;
  OutputRows made_;
  DeviceVector norm_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<float> rows_made_, rows_gained_, before_;
};

void check(Context& context, const Case& of, Gates& gates) {
  Problem problem(context, of);
  RowOp op = problem.op();
  const auto alone = check_row_op(context, op, gates);
  gates.within("float64", problem.share(alone, op.rows));
  problem.check_prologue(gates, alone, op);
  problem.check_controls(gates, op, alone);
}

std::vector<Timed> timed(Context& context, const Case& of) {
  auto problem = std::make_shared<Problem>(context, of);
  const int rows = of.number("rows"), in = of.number("in");
  double weights = 0, features = 0;
  for (const WeightForm& form : need(parse_weights(of.text("weights"), in)))
    weights += stored_bytes(form, in), features += form.out;
  std::vector<Timed> list;
  for (const int count : {1, 8, 64, 1024}) {
    const int n = std::min(count, rows);
    if (n < count && count > 1 && n <= count / 8) break;
    auto out = std::make_shared<OutputRows>(context.backend, n, static_cast<int>(features), 5);
    Floor floor{weights + 4.0 * n * (in + features), 2.0 * n * in * features};
    list.push_back({fmt::format("{} rows", n), floor, [problem, out, n, &context] {
                      const auto jobs = problem->jobs_for(out->matrix(n));
                      context.backend.linear(problem->input(0, n), jobs);
                    }});
  }
  return list;
}

}  // namespace

Kernel linear_kernel() {
  return {"linear",
          "products of rows with weights of every form, their prologues, bias and residual",
          {{"rows", 1, 16384, {}},
           {"in", 32, 1 << 17, {}},
           {"weights", 0, -1, {}},
           {"prologue", 0, -1, kPrologues},
           {"epilogue", 0, -1, {"plain", "bias", "bias+add"}},
           {"fine", 0, -1, {"no", "yes"}}},
          {"float64", "each row alone = in every batch and place", "every schedule", "prologue in one = its own op",
           "canaries"},
          {"two rows swapped", "the last inputs dropped", "a weight's code changed"},
          check,
          timed};
}

}  // namespace steadfast::contract
