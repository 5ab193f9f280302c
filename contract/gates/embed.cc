// embed: rows of a table of weights, expanded: fma(code, scale, bias) in float32, exact to the bit on every device
// (CUDA rounds dense float weights to bf16 when they are loaded).
#include "contract/random_weights.h"
#include "contract/row_op.h"

namespace steadfast::contract {
namespace {

struct Problem {
  Problem(Context& context, const Case& of)
      : rows(of.number("rows")),
        width(of.number("width")),
        forms(need(parse_weights(of.text("weights"), width))),
        reader(forms[0], width, 21),
        weight(reader.pack(context.backend)),
        rounds_dense(is_cuda(context.arithmetic)) {
    for (int row = 0; row < rows; ++row)
      ids.push_back(row == 0 ? 0 : row == 1 ? forms[0].out - 1 : static_cast<TokenId>((row * 37) % forms[0].out));
    op.rows = rows;
    op.width = width;
    op.run = [this](Backend& backend, int first, const Matrix& out) {
      const std::span all(ids);
      backend.embed(*weight, all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(out.rows)), out);
    };
    op.reference = [this](int row, double* exact, double* bound) {
      std::vector<float> values(static_cast<std::size_t>(width));
      if (!forms[0].dense())
        expand_row(reader, true_ids[static_cast<std::size_t>(row)], values.data());
      else
        values = reader.dense_row(true_ids[static_cast<std::size_t>(row)]);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool rounds = forms[0].dense() && rounds_dense;
        exact[i] = static_cast<double>(rounds ? bf16_to_f32(f32_to_bf16(values[i])) : values[i]);
        bound[i] = 0;
      }
    };
    true_ids = ids;
  }
  int rows, width;
  std::vector<WeightForm> forms;
  RandomWeight reader;
  std::unique_ptr<Weight> weight;
  bool rounds_dense;
  std::vector<TokenId> ids, true_ids;
  RowOp op;
};

void check(Context& context, const Case& of, Gates& gates) {
  Problem problem(context, of);
  const auto alone = check_row_op(context, problem.op, gates);
  if (problem.rows > 1) {
    std::swap(problem.ids[0], problem.ids[1]);
    gates.control("two ids swapped", differs(context, problem.op, alone, 2));
    std::swap(problem.ids[0], problem.ids[1]);
  }
  RandomWeight planted = problem.reader;
  planted.plant(problem.ids[0], problem.width - 1);
  problem.weight = planted.pack(context.backend);
  gates.control("a weight's code changed", worst_share(context, problem.op, 1) > 1);
}

std::vector<Timed> timed(Context& context, const Case& of) {
  auto problem = std::make_shared<Problem>(context, of);
  auto out = std::make_shared<OutputRows>(context.backend, problem->rows, problem->width);
  WeightForm row = problem->forms[0];
  row.out = 1;
  const double bytes = problem->rows * (stored_bytes(row, problem->width) + 4.0 * problem->width);
  return {{fmt::format("{} rows", problem->rows), {bytes, 0}, [problem, out, &context] {
             problem->op.run(context.backend, 0, out->matrix(problem->rows));
           }}};
}

}  // namespace

Kernel embed_kernel() {
  return {"embed",
          "rows of the table of embeddings",
          {{"rows", 1, 16384, {}}, {"width", 32, 1 << 16, {}}, {"weights", 0, -1, {}}},
          {"float64 (exact)", "each row alone = in every batch and place", "canaries"},
          {"two ids swapped", "a weight's code changed"},
          check,
          timed};
}

}  // namespace steadfast::contract
