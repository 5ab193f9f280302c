// Cuts of linears of 9 to 96 rows: columns of tiles, runs of workers, where sums that workers share lie.
#include "backend/cuda/linear_mid.h"

#include <algorithm>

#include "backend/cuda/linear_cut.h"
#include "base/check.h"

namespace steadfast::cuda {
namespace {

constexpr int kMostSlices = 4;                // of linear_slices()
constexpr int kPlaces = kMostSlices + 1 + 1;  // of a warp's sums: slices of a shared column, handed on, its own

std::size_t index_of(int rows) {
  const auto* block = std::lower_bound(std::begin(kMidRows), std::end(kMidRows), rows);
  CHECK(block != std::end(kMidRows), "linear: {} rows in one block", rows);
  return static_cast<std::size_t>(block - std::begin(kMidRows));
}

// So many whole slices each, where that keeps most of them busy: none is cut then. Otherwise as many as the card holds,
// or as may share.
int choose_workers(const LinearCut& cut, int multiprocessors) {
  const int most = std::min(multiprocessors, cut.most_workers());
  for (int each = cut.slices; cut.slices > 1 && each >= 1; --each) {
    const int workers = cut.columns * cut.slices / each;
    if (cut.slices % each == 0 && workers <= most && workers * 5 >= most * 4) return workers;
  }
  return most;
}

}  // namespace

int mid_block(int rows) { return kMidRows[index_of(rows)]; }

std::size_t mid_scratch_bytes(const CardTraits& card, int rows) {
  return static_cast<std::size_t>(card.multiprocessors) *
         static_cast<std::size_t>(mid_teams(rows) * kTeamWarps * kPlaces) *
         static_cast<std::size_t>(rows * kStripFeatures) * sizeof(float);
}

std::size_t most_mid_scratch_bytes(const CardTraits& card) {
  std::size_t most = 0;
  for (const int rows : kMidRows) most = std::max(most, mid_scratch_bytes(card, rows));
  return most;
}

void launch_mid(Recorder& recorder, const FormKernels& kernels, LinearLaunch launch, void* scratch) {
  const int rows = launch.padded_rows;
  const LinearKernel& kernel = kernels.mid[index_of(rows)];
  const int teams = kernel.units;
  LinearCut cut{divide_up(launch.tiles, teams), launch.chunks, launch.slices, 1};
  cut.workers = choose_workers(cut, recorder.card().multiprocessors);
  CHECK(cut.fits() && launch.slices <= kMostSlices, "linear: {} columns of {} chunks in {} slices", cut.columns,
        cut.chunks, cut.slices);
  const std::size_t warps = static_cast<std::size_t>(cut.workers * teams * kTeamWarps);
  CHECK(2 * warps * sizeof(std::uint32_t) <= Recorder::kCounterBytes, "linear: {} workers", cut.workers);
  launch.partials = static_cast<float*>(scratch);
  launch.counters = recorder.counters();
  launch.mid = {launch.partials + warps * static_cast<std::size_t>(kMostSlices * rows * kStripFeatures),
                launch.counters + warps, cut.columns, cut.workers};
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(cut.workers);
  shape.block.x = static_cast<unsigned>(kernel.threads);
  shape.shared = static_cast<std::size_t>(kernel.shared_bytes);
  shape.early = true;
  recorder.launch(kernel.name, kernel.kernel, shape, launch);
}

}  // namespace steadfast::cuda
