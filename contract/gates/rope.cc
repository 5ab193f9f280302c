// rope_table and rope. The table: sine and cosine of the float32 angle, made in double and rounded: half a unit of
// float32 and 1e-13, times the magnitude (a rounding). The rotation, from the table's float32 entries: two products and
// a sum: gamma_2 of their magnitudes.
#include <cmath>

#include "contract/row_op.h"

namespace steadfast::contract {
namespace {

constexpr float kMagnitude = 1.25f;

struct Problem {
  Problem(Context& context, const Case& of)
      : rows(of.number("rows")),
        heads(of.number("heads")),
        dim(of.number("dim")),
        half(std::min(of.number("dims"), dim) / 2),
        x(context.backend, random_rows(rows, heads * dim, 41), heads * dim),
        cosine(context.backend, static_cast<std::size_t>(rows * half) * sizeof(float)),
        sine(context.backend, static_cast<std::size_t>(rows * half) * sizeof(float)),
        inverse(context.backend, inverses(half)) {
    const int border[] = {0, 1, 15, 16, 63, 64, 255, 256, 511, 512, 4096, 131071};
    for (int row = 0; row < rows; ++row)
      positions.push_back(row < 12 ? border[row]
                                   : static_cast<std::int32_t>(mix(static_cast<std::uint64_t>(row)) % 131072));
  }
  static std::vector<float> inverses(int half) {
    std::vector<float> list;
    for (int i = 0; i < half; ++i)
      list.push_back(static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / half)));
    return list;
  }
  void make_table(Backend& backend, int first, int count) {
    const auto at = static_cast<std::ptrdiff_t>(first) * half;
    backend.rope_table(std::span(positions).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                       inverse.device(), half, kMagnitude, cosine.floats() + at, sine.floats() + at);
  }
  std::vector<float> table(bool of_cosine) const {
    std::vector<float> values(static_cast<std::size_t>(rows * half));
    (of_cosine ? cosine : sine).download(values.data(), values.size() * sizeof(float));
    return values;
  }

  int rows, heads, dim, half;
  InputRows x;
  Buffer cosine, sine;
  DeviceVector inverse;
  std::vector<std::int32_t> positions;
};

RowOp rotation(Problem& problem, const std::vector<float>& cosine, const std::vector<float>& sine) {
  RowOp op;
  op.rows = problem.rows;
  op.width = problem.heads * problem.dim;
  op.run = [&problem](Backend& backend, int first, const Matrix& out) {  // in place
    const auto at = static_cast<std::ptrdiff_t>(first) * problem.half;
    backend.copy_rows(problem.x.matrix(first, out.rows), out);
    backend.rope(out, problem.heads, problem.dim,
                 {problem.cosine.floats() + at, problem.sine.floats() + at, 2 * problem.half});
  };
  op.reference = [&problem, &cosine, &sine](int row, double* exact, double* bound) {
    const float* x = problem.x.host(row);
    const int half = problem.half;
    for (int i = 0; i < problem.heads * problem.dim; ++i) {
      const int d = i % problem.dim;
      exact[i] = static_cast<double>(x[i]), bound[i] = 0;
      if (d >= 2 * half) continue;
      const auto at = static_cast<std::size_t>(row * half + d % half);
      const double own = static_cast<double>(x[i]) * static_cast<double>(cosine[at]);
      const double other = static_cast<double>(x[d < half ? i + half : i - half]) * static_cast<double>(sine[at]);
      exact[i] = d < half ? own - other : own + other;
      bound[i] = gamma_n(2) * (std::fabs(own) + std::fabs(other)) + 1e-37;
    }
  };
  return op;
}

void check_table(Context& context, Problem& problem, Gates& gates) {
  problem.make_table(context.backend, 0, problem.rows);
  settle(context.backend, problem.cosine.data());
  const auto cosine = problem.table(true), sine = problem.table(false);
  Share share;
  for (int row = 0; row < problem.rows; ++row)
    for (int i = 0; i < problem.half; ++i) {
      const float angle = static_cast<float>(problem.positions[static_cast<std::size_t>(row)]) *
                          problem.inverse.host[static_cast<std::size_t>(i)];
      const auto at = static_cast<std::size_t>(row * problem.half + i);
      const double magnitude = static_cast<double>(kMagnitude);
      const double c = magnitude * std::cos(static_cast<double>(angle)),
                   s = magnitude * std::sin(static_cast<double>(angle));
      share.add(static_cast<double>(cosine[at]), c, gamma_n(2) * std::fabs(c) + 1e-13);
      share.add(static_cast<double>(sine[at]), s, gamma_n(2) * std::fabs(s) + 1e-13);
    }
  gates.within("table against float64", share.worst());
  const auto again = [&](Backend& backend, const std::string& what, int pieces) {
    problem.cosine.reset(problem.cosine.bytes());
    problem.sine.reset(problem.sine.bytes());
    for (int first = 0; first < problem.rows; first += pieces)
      problem.make_table(backend, first, std::min(pieces, problem.rows - first));
    settle(backend, problem.cosine.data());
    gates.equal(what, problem.table(true).data(), cosine.data(), problem.rows, problem.half);
    gates.equal(what, problem.table(false).data(), sine.data(), problem.rows, problem.half);
    gates.untouched(what, !problem.cosine.intact() || !problem.sine.intact());
  };
  again(context.backend, "table, each row alone", 1);
  for (const Schedule& schedule : context.schedules)
    if (schedule.only.empty()) again(*schedule.backend, "table, " + schedule.name, 7);
}

void check(Context& context, const Case& of, Gates& gates) {
  Problem problem(context, of);
  check_table(context, problem, gates);
  const auto cosine = problem.table(true), sine = problem.table(false);
  const RowOp op = rotation(problem, cosine, sine);
  const auto alone = check_row_op(context, op, gates);
  std::swap(problem.positions[0], problem.positions[1]);
  problem.make_table(context.backend, 0, problem.rows);
  gates.control("two positions swapped", differs(context, op, alone, 2));
  std::swap(problem.positions[0], problem.positions[1]);
  problem.make_table(context.backend, 0, problem.rows);
  std::vector<float> cut = problem.x.host();
  for (int i = 0; i < op.width; ++i)
    if (i % problem.dim == 2 * problem.half - 1) cut[static_cast<std::size_t>(op.width + i)] = 0;
  problem.x.change(cut);
  gates.control("the last rotated dim dropped", worst_share(context, op, 2) > 1);
}

std::vector<Timed> timed(Context& context, const Case& of) {
  auto problem = std::make_shared<Problem>(context, of);
  problem->make_table(context.backend, 0, problem->rows);
  const double bytes = 8.0 * problem->rows * problem->heads * 2 * problem->half;
  auto out = std::make_shared<OutputRows>(context.backend, problem->rows, problem->heads * problem->dim);
  context.backend.copy_rows(problem->x.matrix(0, problem->rows), out->matrix(problem->rows));
  return {{fmt::format("{} rows", problem->rows), {bytes, 0}, [problem, out, &context] {
             context.backend.rope(out->matrix(problem->rows), problem->heads, problem->dim,
                                  {problem->cosine.floats(), problem->sine.floats(), 2 * problem->half});
           }}};
}

}  // namespace

Kernel rope_kernel() {
  return {"rope",
          "the table of cosines and sines, and the rotation of heads by it",
          {{"rows", 2, 16384, {}}, {"heads", 1, 256, {}}, {"dim", 16, 256, {}}, {"dims", 2, 256, {}}},
          {"float64", "each row alone = in every batch and place", "canaries"},
          {"two positions swapped", "the last rotated dim dropped"},
          check,
          timed};
}

}  // namespace steadfast::contract
