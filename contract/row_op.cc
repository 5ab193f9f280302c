// The rows alone come first: all else is compared with them.
#include "contract/row_op.h"

#include <algorithm>
#include <set>

namespace steadfast::contract {

std::vector<int> sampled(int rows, int most) {
  std::set<int> picked;
  const int count = std::min(rows, most);
  for (int i = 0; i < count; ++i)
    picked.insert(count == 1 ? 0 : static_cast<int>(static_cast<std::int64_t>(i) * (rows - 1) / (count - 1)));
  return {picked.begin(), picked.end()};
}

namespace {

void prepare(const RowOp& op, OutputRows& out, int first, int rows) {
  if (op.before.empty()) return out.poison(rows);
  const auto at = op.before.begin() + static_cast<std::ptrdiff_t>(first) * op.width;
  out.fill({at, at + static_cast<std::ptrdiff_t>(rows) * op.width}, rows);
}

std::vector<float> rows_alone(Backend& backend, const RowOp& op, OutputRows& out, bool& damage) {
  prepare(op, out, 0, op.rows);
  for (int row = 0; row < op.rows; ++row) op.run(backend, row, out.matrix(row, 1));
  settle(backend, out.matrix(0, 1).data);
  return out.take(op.rows, damage);
}

void check_batches(Backend& backend, const RowOp& op, OutputRows& out, const std::vector<float>& alone,
                   const Schedule& schedule, Gates& gates) {
  const bool own = schedule.backend == nullptr;
  for (const int rows : batch_sizes(op.rows)) {
    if (rows < schedule.least_rows || rows > schedule.most_rows) continue;
    std::set<int> places = {0, (op.rows - rows) / 2, op.rows - rows};
    if (!own) places = {op.rows - rows};
    for (const int first : places) {
      bool damage = false;
      const auto got = run_rows(backend, op, out, first, rows, damage);
      const std::string what =
          fmt::format("{} rows from {}{}{}", rows, first, own ? "" : ", ", own ? std::string() : schedule.name);
      gates.equal(what, got.data(), alone.data() + static_cast<std::ptrdiff_t>(first) * op.width, rows, op.width);
      gates.untouched(what, damage);
    }
  }
}

double share_of(const RowOp& op, const std::vector<float>& got, const std::vector<int>& rows) {
  const auto width = static_cast<std::size_t>(op.width);
  std::vector<double> exact(width), bound(width);
  Share share;
  for (const int row : rows) {
    op.reference(row, exact.data(), bound.data());
    for (std::size_t i = 0; i < width; ++i)
      share.add(static_cast<double>(got[static_cast<std::size_t>(row) * width + i]), exact[i], bound[i]);
  }
  return share.worst();
}

}  // namespace

std::vector<float> run_rows(Backend& backend, const RowOp& op, OutputRows& out, int first, int rows, bool& damage) {
  prepare(op, out, first, rows);
  op.run(backend, first, out.matrix(rows));
  settle(backend, out.matrix(0, 1).data);
  return out.take(rows, damage);
}

std::vector<float> check_row_op(Context& context, const RowOp& op, Gates& gates) {
  OutputRows out(context.backend, op.rows, op.width, op.gap);
  bool damage = false;
  const auto alone = rows_alone(context.backend, op, out, damage);
  gates.untouched("rows alone", damage);
  gates.within("float64", share_of(op, alone, sampled(op.rows, op.reference_rows)));
  check_batches(context.backend, op, out, alone, {}, gates);
  for (const Schedule& schedule : context.schedules)
    if (schedule.only.empty() || schedule.only == op.kernel)
      check_batches(*schedule.backend, op, out, alone, schedule, gates);
  return alone;
}

bool differs(Context& context, const RowOp& op, const std::vector<float>& alone, int rows) {
  OutputRows out(context.backend, rows, op.width, op.gap);
  bool damage = false;
  const auto got = run_rows(context.backend, op, out, 0, rows, damage);
  return differing(got.data(), alone.data(), got.size()) > 0;
}

double worst_share(Context& context, const RowOp& op, int rows) {
  OutputRows out(context.backend, rows, op.width, op.gap);
  bool damage = false;
  return share_of(op, run_rows(context.backend, op, out, 0, rows, damage), sampled(rows, rows));
}

}  // namespace steadfast::contract
