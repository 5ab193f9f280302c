// The ops of one row each: norms, products with an activation, copies, the embedding. Bounds count roundings: a sum of
// squares in chains of n / 16 and a tree (at most n / 16 + 40 roundings on every device, as CUDA's 1,024 chains are
// shorter), the mean, eps, the root, the quotient and two products; exp within 2 ulp (4 roundings' worth), 1 +, the
// quotient. exp flushes results below 2^-126, which is worth 1e-35 of the factor beside it.
#include <cmath>

#include "contract/row_op.h"

namespace steadfast::contract {
namespace {

const Column kRows{"rows", 1, 16384, {}};
const Column kWidth{"width", 16, 1 << 18, {}};
const Column kHeads{"heads", 1, 1024, {}};
const Column kDim{"dim", 16, 4096, {}};
const std::vector<std::string> kGates = {"float64", "each row alone = in every batch and place", "canaries"};

double silu(double x) { return x / (1 + std::exp(-x)); }
double sum_roundings(int n) { return n / 16 + 40; }

// Inputs of a case and the op on them; the first input is what controls change.
struct Problem {
  std::vector<std::unique_ptr<InputRows>> inputs;
  std::vector<std::unique_ptr<DeviceVector>> vectors;
  RowOp op;

  const InputRows& add(Context& context, std::vector<float> values, int width) {
    inputs.push_back(std::make_unique<InputRows>(context.backend, std::move(values), width));
    return *inputs.back();
  }
  const DeviceVector& add(Context& context, std::vector<float> values) {
    vectors.push_back(std::make_unique<DeviceVector>(context.backend, std::move(values)));
    return *vectors.back();
  }
};

// x / sqrt(mean x^2 + eps) * weight over `n` values; bound of their errors.
void norm(const float* x, const float* weight, int n, double eps, double* exact, double* bound) {
  double squares = 0;
  for (int i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double inverse = 1 / std::sqrt(squares / n + eps);
  for (int i = 0; i < n; ++i) {
    exact[i] = static_cast<double>(x[i]) * inverse * static_cast<double>(weight[i]);
    bound[i] = gamma_n(sum_roundings(n)) * std::fabs(exact[i]) + 1e-37;
  }
}

// The gates of all these ops, and their controls: rows swapped, the end of a row dropped.
void check(Context& context, Problem& problem, Gates& gates) {
  const RowOp& op = problem.op;
  const auto alone = check_row_op(context, op, gates);
  InputRows& input = *problem.inputs[0];
  const int rows = std::min(op.rows, 4);
  const std::size_t width = input.host().size() / static_cast<std::size_t>(input.rows());
  if (rows > 1) {
    std::vector<float> swapped = input.host();
    std::swap_ranges(swapped.begin(), swapped.begin() + static_cast<std::ptrdiff_t>(width),
                     swapped.begin() + static_cast<std::ptrdiff_t>(width));
    input.change(swapped);
    gates.control("two rows swapped", differs(context, op, alone, rows));
  }
  std::vector<float> cut = input.host();
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
    for (std::size_t i = width - std::min<std::size_t>(width, 7); i < width; ++i) cut[row * width + i] = 0;
  input.change(cut);
  gates.control("the end of a row dropped", worst_share(context, op, rows) > 1);
  input.mend();
}

std::vector<Timed> time(std::shared_ptr<Problem> problem, Context& context, double bytes) {
  const RowOp& op = problem->op;
  auto out = std::make_shared<OutputRows>(context.backend, op.rows, op.width, op.gap);
  return {{fmt::format("{} rows", op.rows), {bytes, 0}, [problem, out, &context] {
             problem->op.run(context.backend, 0, out->matrix(problem->op.rows));
           }}};
}

std::shared_ptr<Problem> rms_norm_problem(Context& context, const Case& of) {
  auto problem = std::make_shared<Problem>();
  const int rows = of.number("rows"), width = of.number("width");
  const float eps = 1e-6f;
  const InputRows& x = problem->add(context, random_rows(rows, width, 1), width);
  const DeviceVector& weight = problem->add(context, random_floats(static_cast<std::size_t>(width), 2, 2));
  problem->op = {rows, width,
                 [&x, &weight, eps](Backend& backend, int first, const Matrix& out) {
                   backend.rms_norm(x.matrix(first, out.rows), weight.device(), eps, out);
                 },
                 [&x, &weight, width, eps](int row, double* exact, double* bound) {
                   norm(x.host(row), weight.host.data(), width, static_cast<double>(eps), exact, bound);
                 }};
  return problem;
}

std::shared_ptr<Problem> head_norm_problem(Context& context, const Case& of) {
  auto problem = std::make_shared<Problem>();
  const int rows = of.number("rows"), heads = of.number("heads"), dim = of.number("dim");
  const float eps = 1e-5f;
  const InputRows& x = problem->add(context, random_rows(rows, heads * dim, 3), heads * dim);
  const DeviceVector& weight = problem->add(context, random_floats(static_cast<std::size_t>(dim), 2, 4));
  problem->op = {rows, heads * dim,
                 [=, &x, &weight](Backend& backend, int first, const Matrix& out) {  // in place
                   backend.copy_rows(x.matrix(first, out.rows), out);
                   backend.head_norm(out, heads, dim, weight.device(), eps);
                 },
                 [=, &x, &weight](int row, double* exact, double* bound) {
                   for (int at = 0; at < heads * dim; at += dim)
                     norm(x.host(row) + at, weight.host.data(), dim, static_cast<double>(eps), exact + at, bound + at);
                 }};
  return problem;
}

std::shared_ptr<Problem> gated_norm_problem(Context& context, const Case& of) {
  auto problem = std::make_shared<Problem>();
  const int rows = of.number("rows"), heads = of.number("heads"), dim = of.number("dim"), width = heads * dim;
  const float eps = 1e-6f;
  const InputRows& x = problem->add(context, random_rows(rows, width, 5), width);
  const InputRows& gate = problem->add(context, random_rows(rows, width, 6), width);
  const DeviceVector& weight = problem->add(context, random_floats(static_cast<std::size_t>(dim), 2, 7));
  problem->op = {rows, width,
                 [=, &x, &gate, &weight](Backend& backend, int first, const Matrix& out) {
                   backend.gated_norm(x.matrix(first, out.rows), gate.matrix(first, out.rows), heads, dim,
                                      weight.device(), eps, out);
                 },
                 [=, &x, &gate, &weight](int row, double* exact, double* bound) {
                   for (int at = 0; at < width; at += dim)
                     norm(x.host(row) + at, weight.host.data(), dim, static_cast<double>(eps), exact + at, bound + at);
                   for (int i = 0; i < width; ++i) {
                     const double factor = silu(static_cast<double>(gate.host(row)[i])), normed = exact[i];
                     exact[i] *= factor;
                     bound[i] =
                         gamma_n(sum_roundings(dim) + 8) * std::fabs(exact[i]) + 1e-35 * std::fabs(normed) + 1e-37;
                   }
                 }};
  return problem;
}

// out = f(a, b), both [rows, width].
std::shared_ptr<Problem> product_problem(Context& context, const Case& of, bool of_silu) {
  auto problem = std::make_shared<Problem>();
  const int rows = of.number("rows"), width = of.number("width");
  const InputRows& a = problem->add(context, random_rows(rows, width, 8), width);
  const InputRows& b = problem->add(context, random_rows(rows, width, 9), width);
  problem->op = {rows, width,
                 [=, &a, &b](Backend& backend, int first, const Matrix& out) {
                   const Matrix x = a.matrix(first, out.rows), y = b.matrix(first, out.rows);
                   if (of_silu)
                     backend.silu_mul(x, y, out);
                   else
                     backend.sigmoid_mul(x, y, out);
                 },
                 [=, &a, &b](int row, double* exact, double* bound) {
                   for (int i = 0; i < width; ++i) {
                     const double x = static_cast<double>(a.host(row)[i]), y = static_cast<double>(b.host(row)[i]);
                     exact[i] = of_silu ? silu(x) * y : x / (1 + std::exp(-y));
                     bound[i] = gamma_n(8) * std::fabs(exact[i]) + 1e-35 * std::fabs(of_silu ? y : x);
                   }
                 }};
  return problem;
}

// gather: row i of the output is row source(i); copy_rows the same with source(i) = i.
std::shared_ptr<Problem> copy_problem(Context& context, const Case& of) {
  auto problem = std::make_shared<Problem>();
  const int rows = of.number("rows"), width = of.number("width");
  const bool gathers = of.is("op", "gather");
  const InputRows& x = problem->add(context, random_rows(rows, width, 10), width);
  const auto source = [rows, gathers](int row) { return gathers ? row * 7 % rows : row; };
  problem->op = {rows, width,
                 [=, &x](Backend& backend, int first, const Matrix& out) {
                   if (!gathers) return backend.copy_rows(x.matrix(first, out.rows), out);
                   std::vector<int> from;
                   for (int row = first; row < first + out.rows; ++row) from.push_back(source(row));
                   backend.gather(x.matrix(0, rows), from, out);
                 },
                 [=, &x](int row, double* exact, double* bound) {
                   for (int i = 0; i < width; ++i) exact[i] = static_cast<double>(x.host(source(row))[i]), bound[i] = 0;
                 }};
  return problem;
}

template <auto kMake>
void check_case(Context& context, const Case& of, Gates& gates) {
  check(context, *kMake(context, of), gates);
}
template <auto kMake>
std::vector<Timed> time_case(Context& context, const Case& of) {
  auto problem = kMake(context, of);
  double floats = static_cast<double>(problem->op.rows) * problem->op.width;
  for (const auto& input : problem->inputs) floats += static_cast<double>(input->host().size());
  return time(problem, context, 4 * floats);
}

std::shared_ptr<Problem> silu_problem(Context& context, const Case& of) { return product_problem(context, of, true); }
std::shared_ptr<Problem> sigmoid_problem(Context& context, const Case& of) {
  return product_problem(context, of, false);
}

template <auto kMake>
Kernel small_kernel(std::string name, std::string sentence, std::vector<Column> columns) {
  return {std::move(name),
          std::move(sentence),
          std::move(columns),
          kGates,
          {"two rows swapped", "the end of a row dropped"},
          check_case<kMake>,
          time_case<kMake>};
}

}  // namespace

Kernel rms_norm_kernel() { return small_kernel<rms_norm_problem>("rms_norm", "the norm of a row", {kRows, kWidth}); }
Kernel head_norm_kernel() {
  return small_kernel<head_norm_problem>("head_norm", "the norm of each head of a row, in place",
                                         {kRows, kHeads, kDim});
}
Kernel gated_norm_kernel() {
  return small_kernel<gated_norm_problem>("gated_norm", "the norm of each head, times silu of a gate",
                                          {kRows, kHeads, kDim});
}
Kernel silu_mul_kernel() { return small_kernel<silu_problem>("silu_mul", "silu(gate) * up", {kRows, kWidth}); }
Kernel sigmoid_mul_kernel() {
  return small_kernel<sigmoid_problem>("sigmoid_mul", "x * sigmoid(gate)", {kRows, kWidth});
}
Kernel copy_kernel() {
  return small_kernel<copy_problem>("copy", "rows copied and gathered",
                                    {kRows, kWidth, {"op", 0, -1, {"copy_rows", "gather"}}});
}

}  // namespace steadfast::contract
