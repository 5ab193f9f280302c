// The launcher of the delta rule: cuts pieces into units at the chunks' borders and hands out memory. Grids depend on
// the number of rows of each piece alone: a piece of n rows gets as many units as its worst position needs.
#include "backend/cuda/delta.h"

#include <cmath>
#include <vector>

#include "backend/cuda/delta_kernels.h"

namespace steadfast::cuda {
namespace {

constexpr int kLongPiece = 3 * kChunk;  // from so many rows on, chunks are fetched ahead
constexpr int kMostFused = 4;           // pieces of one row that one launch computes faster than two

int most_units(int rows) { return (rows + 2 * kChunk - 2) / kChunk; }

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

std::size_t floats_of(int a, int b, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

DeltaLayout layout_of(const DeltaShape& shape) {
  DeltaLayout layout{};
  layout.key_heads = shape.key_heads;
  layout.value_heads = shape.value_heads;
  layout.key_dim = shape.key_dim;
  layout.value_dim = shape.value_dim;
  layout.conv_width = shape.conv_width();
  layout.key_width = shape.key_width();
  layout.ratio = shape.value_heads / shape.key_heads;
  layout.tiled = shape.tiled ? 1 : 0;
  layout.u = floats_of(shape.value_heads, shape.key_dim, shape.value_dim);
  layout.k = layout.u + floats_of(shape.value_heads, kChunk, shape.value_dim);
  layout.c = layout.k + floats_of(shape.key_heads, kChunk, shape.key_dim) / 2;
  layout.beta = layout.c + floats_of(shape.value_heads, kChunk);
  layout.floats = layout.beta + floats_of(shape.value_heads, kChunk);
  return layout;
}

// Units of one piece; those that its position does not need are spare.
int add_units(const Piece& piece, const DeltaState& state, int index, std::vector<DeltaUnit>& units) {
  const int start = piece.first_position % kChunk, count = (start + piece.rows + kChunk - 1) / kChunk;
  for (int i = 0; i < count; ++i) {
    DeltaUnit unit{};
    unit.conv = state.conv;
    unit.state = state.state;
    unit.start = start - i * kChunk;
    unit.row = piece.first_row - unit.start;
    unit.end = std::min(unit.start + piece.rows, kChunk);
    unit.position = piece.first_position - unit.start;
    unit.piece = index;
    unit.index = static_cast<int>(units.size());
    units.push_back(unit);
  }
  units.resize(units.size() + static_cast<std::size_t>(most_units(piece.rows) - count));
  return count;
}

struct Plan {
  std::vector<DeltaUnit> units, single;  // of pieces of more rows; of one
  std::vector<DeltaPiece> few_rows, many_rows;
};

Plan plan_of(const DeltaArgs& args) {
  Plan plan;
  for (std::size_t i = 0; i < args.pieces.size(); ++i) {
    const Piece& piece = args.pieces[i];
    std::vector<DeltaUnit>& of_kind = piece.rows == 1 ? plan.single : plan.units;
    const auto first = of_kind.size();
    const int count = add_units(piece, args.states[i], static_cast<int>(i), of_kind);
    if (piece.rows > 1)
      (piece.rows < kLongPiece ? plan.few_rows : plan.many_rows)
          .push_back({static_cast<int>(first), count, piece.first_position % kChunk,
                      of_kind[first + static_cast<std::size_t>(count) - 1].end});
  }
  return plan;
}

std::size_t earlier_keys_bytes(const DeltaShape& shape, std::size_t pieces) {
  return pieces * floats_of(shape.key_heads, kChunk * shape.key_dim) * sizeof(__nv_bfloat16);
}

DeltaFrontParams front_params(const DeltaArgs& args) {
  DeltaFrontParams front{};
  front.layout = layout_of(args.shape);
  front.x = args.x.data;
  front.a = args.a.data;
  front.b = args.b.data;
  front.x_stride = args.x.stride;
  front.a_stride = args.a.stride;
  front.b_stride = args.b.stride;
  front.conv_weight = args.weights.conv;
  front.a_weight = args.weights.a;
  front.dt_bias = args.weights.dt_bias;
  front.taps = args.shape.taps;
  front.query_scale = 1.0f / std::sqrt(static_cast<float>(args.shape.key_dim));
  return front;
}

}  // namespace

Status check_delta_shape(const DeltaShape& s) {
  const bool keys = s.key_dim == 32 || s.key_dim == 64 || s.key_dim == 128;
  const bool values = s.value_dim == 32 || (s.value_dim > 0 && s.value_dim % 64 == 0);
  const bool heads = s.key_heads > 0 && s.value_heads > 0 && s.value_heads % s.key_heads == 0 &&
                     s.value_heads / s.key_heads <= kMostRatio &&
                     s.key_dim / 2 + s.value_heads / s.key_heads * s.value_dim / 4 <= 320;
  if (!keys || !values || !heads || s.taps < 1 || s.taps > kDeltaTaps)
    return Status::error(
        "the CUDA backend has no recurrent layers of {} key heads of {} dims, {} value heads of {} dims, {} taps: key "
        "dims are 32, 64 or 128, value dims 32 or multiples of 64, taps 4 at most; run with --device cpu",
        s.key_heads, s.key_dim, s.value_heads, s.value_dim, s.taps);
  return Status::ok();
}

DeltaStateBytes delta_state_bytes(const DeltaShape& shape) {
  return {aligned(floats_of(kDeltaTaps, shape.conv_width()) * sizeof(float)),
          aligned(layout_of(shape).floats * sizeof(float))};
}

std::size_t delta_scratch_bytes(const DeltaShape& shape, int rows, int pieces) {
  const int units = rows / kChunk + 2 * pieces + 1;
  return aligned(floats_of(units, shape.value_heads) * DeltaAux::kBytes) +
         earlier_keys_bytes(shape, static_cast<std::size_t>(pieces));
}

std::size_t delta_arena_bytes(int rows, int pieces) {
  const int units = rows / kChunk + 2 * pieces + 1;
  return floats_of(units + pieces, static_cast<int>(sizeof(DeltaUnit))) +
         floats_of(pieces, static_cast<int>(sizeof(DeltaPiece))) + 64;
}

void delta(Recorder& recorder, const DeltaArgs& args) {
  const DeltaShape& shape = args.shape;
  const Status fits = check_delta_shape(shape);
  CHECK(static_cast<bool>(fits), "{}", fits.message());
  CHECK(args.x.stride % 4 == 0 && args.mixed.stride % 4 == 0 && args.out.stride % 2 == 0,
        "delta: rows at strides {}, {}, {}", args.x.stride, args.mixed.stride, args.out.stride);
  Plan plan = plan_of(args);
  const bool fused = static_cast<int>(plan.single.size()) <= kMostFused;
  DeltaFrontParams front = front_params(args);
  if (fused && !plan.single.empty()) {
    front.units = recorder.put(std::span<const DeltaUnit>(plan.single));
    launch_delta_fused(recorder, {front, args.out.data, args.out.stride}, static_cast<int>(plan.single.size()));
  }
  if (!fused) {
    for (DeltaUnit& unit : plan.single) {
      unit.index = static_cast<int>(plan.units.size());
      plan.units.push_back(unit);
    }
  }
  if (plan.units.empty()) return;
  const std::size_t aux = aligned(plan.units.size() * floats_of(args.shape.value_heads, DeltaAux::kBytes));
  auto* const scratch =
      static_cast<std::byte*>(recorder.scratch(aux + earlier_keys_bytes(args.shape, args.pieces.size())));
  front.units = recorder.put(std::span<const DeltaUnit>(plan.units));
  front.rows = reinterpret_cast<__nv_bfloat16*>(args.mixed.data);
  front.rows_stride = 2 * args.mixed.stride;
  front.aux = scratch;
  front.earlier_keys = reinterpret_cast<__nv_bfloat16*>(scratch + aux);
  launch_delta_front(recorder, front, static_cast<int>(plan.units.size()));
  DeltaRuleParams rule{front.layout,    nullptr,        front.units,       front.x,   front.x_stride,
                       args.shape.taps, front.rows,     front.rows_stride, front.aux, front.earlier_keys,
                       args.out.data,   args.out.stride};
  for (const DeltaPieces kind : {DeltaPieces::kManyRows, DeltaPieces::kFewRows}) {
    const auto& pieces = kind == DeltaPieces::kManyRows ? plan.many_rows : plan.few_rows;
    if (pieces.empty()) continue;
    rule.pieces = recorder.put(std::span<const DeltaPiece>(pieces));
    launch_delta_rule(recorder, rule, static_cast<int>(pieces.size()), kind);
  }
  if (fused) return;
  rule.pieces = nullptr;
  rule.units = recorder.put(std::span<const DeltaUnit>(plan.single));
  launch_delta_rule(recorder, rule, static_cast<int>(plan.single.size()), DeltaPieces::kOneRow);
}

}  // namespace steadfast::cuda
