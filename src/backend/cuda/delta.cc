// The launcher of the delta rule: cuts pieces into units at the chunks' borders and hands out memory. Grids depend on
// the number of rows of each piece alone: a piece of n rows gets as many units as its worst position needs.
#include "backend/cuda/delta.h"

#include <cmath>
#include <vector>

#include "backend/cuda/delta_kernels.h"

namespace steadfast::cuda {
namespace {

constexpr int kLongPiece = 3 * kChunk;  // from so many rows on, chunks are fetched ahead

DeltaPieces kind_of(const Piece& piece) {
  if (piece.rows == 1) return DeltaPieces::kOneRow;
  return piece.rows < kLongPiece ? DeltaPieces::kFewRows : DeltaPieces::kManyRows;
}

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
         floats_of(pieces, shape.key_heads, kChunk * shape.key_dim) * sizeof(__nv_bfloat16);
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
  std::vector<DeltaUnit> units;
  std::vector<DeltaUnit> single;
  std::vector<DeltaPiece> several[2];
  for (std::size_t i = 0; i < args.pieces.size(); ++i) {
    const Piece& piece = args.pieces[i];
    const int first = static_cast<int>(units.size());
    const int count = add_units(piece, args.states[i], static_cast<int>(i), units);
    const DeltaUnit& last = units[static_cast<std::size_t>(first + count - 1)];
    if (kind_of(piece) == DeltaPieces::kOneRow)
      single.push_back(last);
    else
      several[kind_of(piece) == DeltaPieces::kManyRows ? 1 : 0].push_back(
          {first, count, piece.first_position % kChunk, last.end});
  }
  const DeltaLayout layout = layout_of(shape);
  const std::size_t aux = aligned(units.size() * floats_of(shape.value_heads, DeltaAux::kBytes));
  const std::size_t keys =
      floats_of(static_cast<int>(args.pieces.size()), shape.key_heads, kChunk * shape.key_dim) * sizeof(__nv_bfloat16);
  auto* const scratch = static_cast<std::byte*>(recorder.scratch(aux + keys));
  auto* const rows = reinterpret_cast<__nv_bfloat16*>(args.mixed.data);
  auto* const earlier_keys = reinterpret_cast<__nv_bfloat16*>(scratch + aux);
  const DeltaUnit* const device_units = recorder.put(std::span<const DeltaUnit>(units));
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.key_dim));
  launch_delta_front(recorder,
                     {layout, device_units, args.x.data, args.a.data, args.b.data, args.x.stride, args.a.stride,
                      args.b.stride, args.weights.conv, args.weights.a, args.weights.dt_bias, shape.taps, scale, rows,
                      2 * args.mixed.stride, scratch, earlier_keys},
                     static_cast<int>(units.size()));
  DeltaRuleParams rule{layout,        nullptr,      device_units,  args.x.data,
                       args.x.stride, shape.taps,   rows,          2 * args.mixed.stride,
                       scratch,       earlier_keys, args.out.data, args.out.stride};
  for (const DeltaPieces kind : {DeltaPieces::kManyRows, DeltaPieces::kFewRows}) {
    const auto& pieces = several[kind == DeltaPieces::kManyRows ? 1 : 0];
    if (pieces.empty()) continue;
    rule.pieces = recorder.put(std::span<const DeltaPiece>(pieces));
    launch_delta_rule(recorder, rule, static_cast<int>(pieces.size()), kind);
  }
  if (single.empty()) return;
  rule.pieces = nullptr;
  rule.units = recorder.put(std::span<const DeltaUnit>(single));
  launch_delta_rule(recorder, rule, static_cast<int>(single.size()), DeltaPieces::kOneRow);
}

}  // namespace steadfast::cuda
