// Scratch: partial results of short pieces (or totals of long ones, whose launch comes after) from its start.
#include "backend/cuda/attention.h"

#include <algorithm>

#include "backend/cuda/attention_kernels.h"

namespace steadfast::cuda {
namespace {

// Short pieces beyond this are computed as long ones.
constexpr std::size_t kMostPartialBytes = std::size_t{128} << 20;
constexpr double kLog2E = 1.4426950408889634;

bool use_hopper(const CardTraits& card, int dim) { return card.wgmma() && has_hopper_attention(dim); }

AttentionGrid grid_of(const CardTraits& card, int dim, bool fp8, AttentionSchedule schedule) {
  return schedule == AttentionSchedule::kBest && use_hopper(card, dim) ? hopper_grid(card, fp8) : portable_grid(card);
}

// Totals and, behind them, states of `slots` units.
std::size_t total_bytes(const AttentionGrid& grid, int slots, int dim) {
  return static_cast<std::size_t>(slots) * static_cast<std::size_t>(grid.long_pairs) *
         (static_cast<std::size_t>(dim + 63) / 64 * 64 * sizeof(float) + 2 * sizeof(float4));
}

void launch(Recorder& recorder, const AttentionArgs& args, AttentionTask task, const AttentionPlan& plan,
            bool is_short) {
  const AttentionGrid grid = grid_of(recorder.card(), args.shape.dim, plan.fp8, args.schedule);
  task.work = is_short ? plan.few : plan.many;
  if (task.work.count == 0) return;
  if (is_short) {
    const std::size_t bytes = plan.partial_rows * static_cast<std::size_t>(task.dim + 4) * sizeof(float);
    task.partials = static_cast<float*>(recorder.scratch(bytes));
  } else {
    const int slots = task.work.shared_totals != 0 ? std::max(task.work.units, grid.blocks) : grid.blocks;
    task.totals = static_cast<float4*>(recorder.scratch(total_bytes(grid, slots, task.dim)));
    task.states = task.totals + static_cast<std::ptrdiff_t>(slots) * grid.long_pairs * ((task.dim + 63) / 64 * 16);
  }
  const bool hopper = args.schedule == AttentionSchedule::kBest && use_hopper(recorder.card(), task.dim);
  (hopper ? launch_hopper : launch_portable)(recorder, task, is_short, plan.fp8);
  if (is_short) launch_fold(recorder, task);
}

}  // namespace

void attention(Recorder& recorder, const AttentionArgs& args) {
  const AttentionShape& shape = args.shape;
  CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0, "attention: {} heads over {}", shape.heads,
        shape.kv_heads);
  const AttentionGrid grid = grid_of(recorder.card(), shape.dim, args.views[0].dtype == DType::kF8E4M3, args.schedule);
  AttentionPlanInput input;
  input.group = shape.heads / shape.kv_heads;
  input.kv_heads = shape.kv_heads;
  input.dim = shape.dim;
  input.short_pairs = grid.short_pairs;
  input.long_pairs = grid.long_pairs;
  input.blocks = grid.blocks;
  input.runs = args.schedule == AttentionSchedule::kBest && use_hopper(recorder.card(), shape.dim);
  input.most_partial_bytes = kMostPartialBytes;
  const AttentionPlan plan = plan_attention(recorder, input, args.pieces, args.views);
  int rows = 0;
  for (const Piece& piece : args.pieces) rows += piece.rows;
  CHECK(args.views[0].dim == shape.dim && args.views[0].kv_heads == shape.kv_heads && rows == args.out.rows &&
            args.out.stride % 2 == 0,
        "attention: {} of {} rows, {} heads of {}, cache of {} heads of {}", args.out.rows, rows, shape.kv_heads,
        shape.dim, args.views[0].kv_heads, args.views[0].dim);
  AttentionTask task{};
  task.tables = plan.tables;
  task.queries = reinterpret_cast<const __nv_bfloat16*>(args.queries);
  task.out = args.out.data;
  task.out_stride = args.out.stride;
  task.group = input.group;
  task.kv_heads = shape.kv_heads;
  task.dim = shape.dim;
  task.log2_scale = static_cast<float>(static_cast<double>(shape.scale) * kLog2E);
  task.counters = recorder.counters();
  launch(recorder, args, task, plan, true);
  launch(recorder, args, task, plan, false);
}

std::size_t attention_scratch_bytes(const CardTraits& card, const AttentionShape& shape, int rows, int pieces,
                                    std::size_t positions) {
  const AttentionGrid grid = grid_of(card, shape.dim, false, AttentionSchedule::kBest);
  const std::size_t totals = total_bytes(grid, 2 * grid.blocks, shape.dim);
  const int group = shape.heads / shape.kv_heads;
  const auto most_rows = static_cast<std::size_t>(std::clamp(std::min(kShortPairs / group, rows), 1, rows));
  const std::size_t spans = positions / 1024 + static_cast<std::size_t>(pieces) * (kShortSpans / 2 + 2);
  const std::size_t partials = std::min(kMostPartialBytes, spans * most_rows * static_cast<std::size_t>(shape.heads) *
                                                               static_cast<std::size_t>(shape.dim + 4) * sizeof(float));
  return std::max(totals, partials);
}

std::size_t attention_arena_bytes(int pieces, std::size_t window, int page_positions) {
  const auto count = static_cast<std::size_t>(pieces);
  const std::size_t pages = std::max<std::size_t>(64, 2 * (window / static_cast<std::size_t>(page_positions) + 1));
  const std::size_t runs = 2 * (window / 1024 + static_cast<std::size_t>(kShortSpans) + 64);
  return count * (sizeof(AttentionEntry) + pages * sizeof(std::int32_t)) + runs * sizeof(std::int32_t) + 1024;
}

const char* attention_kernel_name(const CardTraits& card, int dim) {
  return use_hopper(card, dim) ? "wgmma" : "mma.sync";
}

}  // namespace steadfast::cuda
