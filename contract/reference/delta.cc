// The step form of one head, column by column of the state; the bounds of delta.h beside it.
#include "contract/reference/delta.h"

#include <array>
#include <cmath>

#include "contract/reference/delta_rows.h"

namespace steadfast::contract {
namespace {

constexpr int kChunk = 16;
using Square = std::array<std::array<double, kChunk>, kChunk>;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double length(const std::vector<double>& x) { return std::sqrt(dot(x, x)); }

// One column of the state, exactly.
struct Column {
  explicit Column(int key_dim) : s(static_cast<std::size_t>(key_dim)) {}
  // Returns the change d of this step.
  double step(const DeltaRow& row, double value) {
    const double g = std::exp(row.log);
    for (double& x : s) x *= g;
    const double d = row.beta * (value - dot(s, row.key.x));
    for (std::size_t i = 0; i < s.size(); ++i) s[i] += row.key.x[i] * d;
    return d;
  }
  std::vector<double> s;
  double error = 0;
};

// CPU: one step's own roundings, before the step changes the column.
void cpu_step(const DeltaRow& row, double value, double value_error, Column& column) {
  const double g = std::exp(row.log), key = row.key.norm(), key_error = row.key.error_norm();
  const double size = g * length(column.s), read = g * dot(column.s, row.key.x), d = row.beta * (value - read);
  const double chains = gamma_n(static_cast<double>(row.key.x.size()) + 2);
  const double change = row.beta * (value_error + size * key_error + chains * key * size) +
                        (row.beta_error + gamma_n(3) * row.beta) * std::fabs(value - read);
  column.error = g * column.error + size * (row.log_error + gamma_n(2)) + key * change + key_error * std::fabs(d) +
                 gamma_n(2) * (size + key * std::fabs(d));
}

DeltaHead cpu_head(const std::vector<DeltaRow>& rows, const DeltaShape& shape) {
  DeltaHead head;
  const auto width = static_cast<std::size_t>(shape.value_dim);
  head.exact.resize(rows.size() * width);
  head.bound.resize(head.exact.size());
  for (std::size_t j = 0; j < width; ++j) {
    Column column(shape.key_dim);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const DeltaRow& row = rows[r];
      cpu_step(row, row.value.x[j], row.value.error[j], column);
      column.step(row, row.value.x[j]);
      const double size = length(column.s), query = row.query.norm();
      head.exact[r * width + j] = dot(column.s, row.query.x);
      head.bound[r * width + j] =
          1.01 * (column.error * query + size * row.query.error_norm() + gamma_n(shape.key_dim + 1) * size * query) +
          1e-30;
    }
  }
  return head;
}

// The matrices of one chunk and their errors, and what rows' decays and norms are.
struct Chunk {
  int rows = 0;
  std::array<double, kChunk> log{}, log_error{}, key{}, key_error{}, query{}, query_error{};
  Square a{}, a_error{}, p{}, p_error{}, t{}, t_error{}, m{}, m_error{};

  double decay(int row) const { return std::exp(log[static_cast<std::size_t>(row)]); }
  // Relative, of e^(c_p - c_j): errors of both sums, roundings of the sums, the difference, the exponent, 2^x.
  double decay_error(std::size_t row) const {
    return 2 * log_error[row] + 20 * kRoundoff * std::fabs(log[row]) + std::fabs(log[row]) * 0x1p-22 + 0x1p-21;
  }
};

void fill_products(const DeltaRow* rows, int key_dim, Chunk& c) {
  const double steps = (key_dim / 16 + 1) * 0x1p-22;
  for (std::size_t p = 0; p < static_cast<std::size_t>(c.rows); ++p)
    for (std::size_t j = 0; j <= p; ++j) {
      const double g = std::exp(c.log[p] - c.log[j]), off = c.decay_error(p) + gamma_n(3);
      const double keys = dot(rows[p].key.x, rows[j].key.x), reads = dot(rows[p].query.x, rows[j].key.x);
      if (j < p) {
        const double moved = steps * c.key[p] * c.key[j] + c.key_error[p] * c.key[j] + c.key[p] * c.key_error[j];
        c.a[p][j] = rows[p].beta * keys * g;
        c.a_error[p][j] =
            std::fabs(c.a[p][j]) * off + g * (rows[p].beta_error * std::fabs(keys) + rows[p].beta * moved);
      }
      const double moved = steps * c.query[p] * c.key[j] + c.query_error[p] * c.key[j] + c.query[p] * c.key_error[j];
      c.p[p][j] = reads * g;
      c.p_error[p][j] = std::fabs(c.p[p][j]) * off + g * moved;
    }
}

void solve(Chunk& c) {
  const auto n = static_cast<std::size_t>(c.rows);
  for (std::size_t q = 0; q < n; ++q)
    for (std::size_t p = q; p < n; ++p) {
      double x = p == q ? 1 : 0;
      for (std::size_t i = q; i < p; ++i) x -= c.a[p][i] * c.t[i][q];
      c.t[p][q] = x;
    }
  // |T| (dA + gamma (|A| + I)) |T|, the right product first.
  Square right{};
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t q = 0; q <= p; ++q)
      for (std::size_t i = q; i <= p; ++i)
        right[p][q] +=
            (c.a_error[p][i] + gamma_n(18) * (std::fabs(c.a[p][i]) + (p == i ? 1 : 0))) * std::fabs(c.t[i][q]);
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t q = 0; q <= p; ++q)
      for (std::size_t i = q; i <= p; ++i) c.t_error[p][q] += std::fabs(c.t[p][i]) * right[i][q];
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t q = 0; q <= p; ++q)
      for (std::size_t i = q; i <= p; ++i) {
        c.m[p][q] += c.p[p][i] * c.t[i][q];
        c.m_error[p][q] += std::fabs(c.p[p][i]) * (c.t_error[i][q] + gamma_n(18) * std::fabs(c.t[i][q])) +
                           c.p_error[p][i] * std::fabs(c.t[i][q]);
      }
}

Chunk make_chunk(const DeltaRow* rows, int count, int key_dim) {
  Chunk c;
  c.rows = count;
  double log = 0, error = 0;
  for (std::size_t p = 0; p < static_cast<std::size_t>(count); ++p) {
    c.log[p] = log += rows[p].log;
    c.log_error[p] = error += rows[p].log_error;
    c.key[p] = rows[p].key.norm(), c.key_error[p] = rows[p].key.error_norm();
    c.query[p] = rows[p].query.norm(), c.query_error[p] = rows[p].query.error_norm();
  }
  fill_products(rows, key_dim, c);
  solve(c);
  return c;
}

// u of a chunk's rows for one column and its own errors.
struct Inner {
  std::array<double, kChunk> u{}, error{};
};

Inner inner_rows(const DeltaRow* rows, const Chunk& c, std::size_t j, const std::vector<double>& start) {
  Inner inner;
  const double size = length(start), steps = (static_cast<double>(start.size()) / 16 + 2) * 0x1p-22;
  for (std::size_t p = 0; p < static_cast<std::size_t>(c.rows); ++p) {
    const DeltaRow& row = rows[p];
    const double g = c.decay(static_cast<int>(p)), read = dot(start, row.key.x);
    inner.u[p] = row.beta * (row.value.x[j] - g * read);
    const double parts = std::fabs(row.value.x[j]) + g * std::fabs(read);
    inner.error[p] =
        (row.beta_error + gamma_n(4) * row.beta) * parts + row.beta * row.value.error[j] +
        row.beta * g * (size * (c.key[p] * (0x1p-16 + steps) + c.key_error[p]) + std::fabs(read) * c.decay_error(p));
  }
  return inner;
}

// One chunk of one column: rows' outputs and bounds, and the column at the chunk's end.
void cuda_chunk(const DeltaRow* rows, const Chunk& c, std::size_t j, std::size_t width, double* exact, double* bound,
                Column& column) {
  const std::vector<double> start = column.s;
  const Inner inner = inner_rows(rows, c, j, start);
  const double size = length(start), steps = (static_cast<double>(start.size()) / 16 + 2) * 0x1p-22;
  const auto n = static_cast<std::size_t>(c.rows);
  double own = 0;
  for (std::size_t p = 0; p < n; ++p) {
    const double g = c.decay(static_cast<int>(p)), d = std::fabs(column.step(rows[p], rows[p].value.x[j]));
    double sums = 0, changes = 0;
    for (std::size_t i = 0; i <= p; ++i) {
      sums += (c.m_error[p][i] + std::fabs(c.m[p][i]) * 0x1p-14) * std::fabs(inner.u[i]) +
              std::fabs(c.m[p][i]) * inner.error[i];
      changes += (c.t_error[p][i] + std::fabs(c.t[p][i]) * 0x1p-14) * std::fabs(inner.u[i]) +
                 std::fabs(c.t[p][i]) * inner.error[i];
    }
    exact[p * width] = dot(column.s, rows[p].query.x);
    bound[p * width] = 1.01 * (c.query[p] * g * (column.error + size * (0x1p-16 + steps + c.decay_error(p))) +
                               g * size * c.query_error[p] + sums) +
                       gamma_n(4) * std::fabs(exact[p * width]) + 1e-30;
    const double rest = std::exp(c.log[n - 1] - c.log[p]);
    own += rest * (c.key[p] * (changes + d * (0x1p-15 + c.decay_error(n - 1))) + c.key_error[p] * d);
  }
  column.error = 1.01 * (c.decay(c.rows - 1) * (column.error + size * (c.decay_error(n - 1) + 0x1p-21)) + own);
}

DeltaHead cuda_head(const std::vector<DeltaRow>& rows, const DeltaShape& shape) {
  DeltaHead head;
  const auto width = static_cast<std::size_t>(shape.value_dim);
  head.exact.resize(rows.size() * width);
  head.bound.resize(head.exact.size());
  std::vector<Column> columns(width, Column(shape.key_dim));
  for (std::size_t first = 0; first < rows.size(); first += kChunk) {
    const Chunk chunk =
        make_chunk(&rows[first], static_cast<int>(std::min<std::size_t>(kChunk, rows.size() - first)), shape.key_dim);
    for (std::size_t j = 0; j < width; ++j)
      cuda_chunk(&rows[first], chunk, j, width, &head.exact[first * width + j], &head.bound[first * width + j],
                 columns[j]);
  }
  return head;
}

}  // namespace

DeltaHead delta_head(const DeltaInputs& inputs, Arithmetic arithmetic, int head) {
  const auto rows = delta_rows(inputs, arithmetic, head);
  return is_cuda(arithmetic) ? cuda_head(rows, inputs.shape) : cpu_head(rows, inputs.shape);
}

}  // namespace steadfast::contract
