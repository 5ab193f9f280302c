// Plans of linears: which kernel, which jobs together, how strips are shared among blocks. Schedule alone: what a row's
// sums are is fixed by the weight's shape (linear_slices).
#include "backend/cuda/linear.h"

#include <algorithm>
#include <array>

#include "backend/cuda/linear_chain.h"
#include "backend/cuda/linear_input.h"
#include "backend/cuda/linear_kernels.h"
#include "backend/cuda/linear_mid.h"

namespace steadfast::cuda {
namespace {

constexpr int kFewRows = 64;          // up to which portable blocks may share strips
constexpr int kTogetherRows = 192;    // up to which all jobs of a wide launch go together, measured on an H200
constexpr int kTogetherMixed = 4096;  // the same, where apart they would be two launches
constexpr int kSpreadStrips = 6;      // strips a multiprocessor below which slices go to blocks of their own

LinearSchedule choose(const CardTraits& card, int rows, std::span<const LinearJobArgs> jobs) {
  if (!card.wgmma()) return LinearSchedule::kPortable;
  if (rows <= kChainRows) return LinearSchedule::kRows;
  if (rows <= kMostMidRows) {
    // Not seen to be right on a card yet: the mid kernels of unquantised weights, and their newest one.
    const auto unseen = [&](const LinearJobArgs& job) {
      const Form form = job.weight->form();
      return form == Form::kDense || (form == Form::kEightFloat && rows > 48 && rows <= 64);
    };
    if (std::none_of(jobs.begin(), jobs.end(), unseen)) return LinearSchedule::kMid;
    return rows <= 16 ? LinearSchedule::kPortable : LinearSchedule::kTogether;
  }
  const auto slices = [](const LinearJobArgs& job) { return job.weight->slices(); };
  const bool mixed = std::any_of(jobs.begin(), jobs.end(),
                                 [&](const LinearJobArgs& job) { return (slices(job) > 1) != (slices(jobs[0]) > 1); });
  return rows <= (mixed ? kTogetherMixed : kTogetherRows) ? LinearSchedule::kTogether : LinearSchedule::kWide;
}

bool is_wide(LinearSchedule schedule) {
  return schedule == LinearSchedule::kWide || schedule == LinearSchedule::kTogether;
}

int row_block(LinearSchedule schedule, int rows) {
  if (schedule == LinearSchedule::kPortable) return rows <= 8 ? 8 : 64;
  if (is_wide(schedule)) return 64;
  return schedule == LinearSchedule::kMid ? mid_block(rows) : rows;
}

std::size_t input_bytes(int padded_rows, int in) {
  return static_cast<std::size_t>(chunks_of(in)) * static_cast<std::size_t>(padded_rows) * kChunkRowBytes;
}

std::size_t factor_bytes(int rows) { return static_cast<std::size_t>(round_up(rows, 64)) * sizeof(float); }

std::size_t partial_bytes(int strips, int parts, int rows) {
  return static_cast<std::size_t>(strips) * static_cast<std::size_t>(parts) * static_cast<std::size_t>(rows) *
         kStripFeatures * sizeof(float);
}

// Jobs with weights of one form, at most kMostJobs of them.
LinearLaunch gather_jobs(std::span<const LinearJobArgs> jobs, std::span<const int> picked) {
  LinearLaunch launch;
  for (const int index : picked) {
    const LinearJobArgs& job = jobs[static_cast<std::size_t>(index)];
    launch.jobs[launch.job_count++] = {job.weight->data(),  job.out.data,  job.bias,     job.add,
                                       job.out.stride,      job.out.width, launch.tiles, job.weight->tiles(),
                                       job.weight->slices()};
    launch.tiles += job.weight->tiles();
    launch.slices = std::max(launch.slices, job.weight->slices());
  }
  return launch;
}

// Slices go to blocks of their own where strips alone cannot fill the card. All jobs have the most slices then: fewer
// only come with 16,384 features or more.
int choose_parts(const LinearLaunch& launch, const CardTraits& card) {
  const int strips = launch.tiles * kTileStrips;
  if (launch.rows > kFewRows || strips >= kSpreadStrips * card.multiprocessors) return 1;
  for (int j = 0; j < launch.job_count; ++j)
    if (launch.jobs[j].slices != launch.slices) return 1;
  const std::size_t counters = static_cast<std::size_t>(strips) * 2;  // rows may go to two warps
  return counters * sizeof(std::uint32_t) <= Recorder::kCounterBytes ? launch.slices : 1;
}

void launch_portable(Recorder& recorder, const LinearKernel& kernel, LinearLaunch launch) {
  launch.blocks_per_part = divide_up(launch.tiles * kTileStrips, kernel.units * kernel.strips);
  launch.pass_units = kernel.units;
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(launch.blocks_per_part * launch.parts),
                    static_cast<unsigned>(divide_up(launch.rows, kernel.rows)));
  shape.block.x = static_cast<unsigned>(kernel.threads);
  shape.shared = static_cast<std::size_t>(kernel.shared_bytes);
  recorder.launch(kernel.name, kernel.kernel, shape, launch);
}

// Units of kernel.rows rows, in whole rounds of the clusters; the rest in small ones. Of three cuts, the one whose
// busiest cluster has least to do; a unit costs its rows and a little more.
int choose_full_units(const LinearLaunch& launch, int unit_rows, int clusters) {
  const int pairs = divide_up(launch.tiles, 2), tall = launch.rows / unit_rows, all = tall * pairs;
  const int rest = divide_up(launch.rows - tall * unit_rows, kSmallRows) * pairs;
  int best = all, least = -1;
  for (const int full : {all, all / clusters * clusters, std::max(0, all / clusters * clusters - clusters)}) {
    const int units = full + (all - full) * (unit_rows / kSmallRows) + rest;
    int most = 0;
    for (int c = 0; c < clusters; ++c) {
      const auto mine = [&](int count) { return count > c ? divide_up(count - c, clusters) : 0; };
      most = std::max(most, mine(full) * (unit_rows + 4) + (mine(units) - mine(full)) * (kSmallRows + 4));
    }
    if (least < 0 || most < least) least = most, best = full;
  }
  return best;
}

void launch_wide(Recorder& recorder, const LinearKernel& kernel, LinearLaunch launch) {
  const int clusters = recorder.card().multiprocessors / 2;
  const int pairs = divide_up(launch.tiles, 2);
  launch.wide.tall = launch.rows / kernel.rows;
  launch.wide.full = choose_full_units(launch, kernel.rows, clusters);
  launch.wide.pieces = (launch.wide.tall * pairs - launch.wide.full) * (kernel.rows / kSmallRows);
  launch.wide.left = divide_up(launch.rows - launch.wide.tall * kernel.rows, kSmallRows);
  launch.wide.units = launch.wide.full + launch.wide.pieces + launch.wide.left * pairs;
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(clusters * 2);
  shape.block.x = static_cast<unsigned>(kernel.threads);
  shape.shared = static_cast<std::size_t>(kernel.shared_bytes);
  shape.cluster = 2;
  shape.early = true;
  recorder.launch(kernel.name, kernel.kernel, shape, launch);
}

}  // namespace

const FormKernels& kernels_of(Form form) {
  switch (form) {
    case Form::kFour:
      return four_kernels();
    case Form::kFourSplit:
      return four_split_kernels();
    case Form::kFourFloat:
      return four_float_kernels();
    case Form::kEight:
      return eight_kernels();
    case Form::kEightFloat:
      return eight_float_kernels();
    case Form::kDense:
      return dense_kernels();
  }
  CHECK(false, "no kernels for form {}", static_cast<int>(form));
}

const char* linear_schedule(const CardTraits& card, int rows) {
  const LinearSchedule schedule = choose(card, rows, {});
  if (schedule == LinearSchedule::kPortable) return "portable";
  return schedule == LinearSchedule::kRows ? "rows" : schedule == LinearSchedule::kMid ? "mid" : "wide";
}

std::size_t linear_scratch_bytes(const CardTraits& card, int rows, int in) {
  return input_bytes(round_up(rows, 64), in) + factor_bytes(rows) +
         std::max(partial_bytes(kSpreadStrips * card.multiprocessors, 4, kFewRows), most_mid_scratch_bytes(card));
}

void linear(Recorder& recorder, const LinearInput& input, std::span<const LinearJobArgs> jobs,
            LinearSchedule schedule) {
  const int rows = input.x.rows;
  if (rows == 0 || jobs.empty()) return;
  if (schedule == LinearSchedule::kAuto) schedule = choose(recorder.card(), rows, jobs);
  const int block = row_block(schedule, rows), padded = round_up(rows, block);
  CHECK(schedule != LinearSchedule::kRows || rows <= kChainRows, "linear: {} rows in a chain", rows);
  const std::size_t x_bytes = input_bytes(padded, input.x.width), held = x_bytes + factor_bytes(rows);
  auto* x = static_cast<std::uint8_t*>(recorder.scratch(held));
  auto* factors = input.prologue == Prologue::kRmsNorm ? reinterpret_cast<float*>(x + x_bytes) : nullptr;
  write_linear_input(recorder, input, padded, x, factors);
  std::array<bool, 64> done{};
  CHECK(jobs.size() <= done.size(), "linear: {} jobs", jobs.size());
  for (std::size_t first = 0; first < jobs.size(); ++first) {
    if (done[first]) continue;
    const Form form = jobs[first].weight->form();
    const bool by_slices = schedule == LinearSchedule::kWide || schedule == LinearSchedule::kMid;
    const bool folds = !by_slices || jobs[first].weight->slices() > 1;
    std::array<int, kMostJobs> picked{};
    std::size_t count = 0;
    for (std::size_t j = first; j < jobs.size() && count < kMostJobs; ++j) {
      if (done[j] || jobs[j].weight->form() != form) continue;
      if (by_slices && (jobs[j].weight->slices() > 1) != folds) continue;
      CHECK(jobs[j].weight->in() == input.x.width, "linear: weight reads {} inputs, x has {}", jobs[j].weight->in(),
            input.x.width);
      picked[count++] = static_cast<int>(j);
      done[j] = true;
    }
    if (schedule == LinearSchedule::kRows) {
      std::array<LinearJobArgs, kMostJobs> together;
      for (std::size_t i = 0; i < count; ++i) together[i] = jobs[static_cast<std::size_t>(picked[i])];
      launch_chain_of_one(recorder, x, factors, rows, input.x.width, std::span(together).first(count));
      continue;
    }
    LinearLaunch launch = gather_jobs(jobs, std::span(picked).first(count));
    launch.x = x;
    launch.factors = factors;
    launch.rows = rows;
    launch.padded_rows = padded;
    launch.chunks = chunks_of(input.x.width);
    const FormKernels& kernels = kernels_of(form);
    if (schedule == LinearSchedule::kMid) {
      auto* scratch = static_cast<std::uint8_t*>(recorder.scratch(held + mid_scratch_bytes(recorder.card(), block)));
      launch_mid(recorder, kernels, launch, scratch + held);
      continue;
    }
    launch.parts = choose_parts(launch, recorder.card());
    if (launch.parts > 1) {
      const std::size_t all = held + partial_bytes(launch.tiles * kTileStrips, launch.parts, block);
      launch.partials = reinterpret_cast<float*>(static_cast<std::uint8_t*>(recorder.scratch(all)) + held);
      launch.counters = recorder.counters();
    }
    if (is_wide(schedule))
      launch_wide(recorder, kernels.wide[folds ? 1 : 0], launch);
    else
      launch_portable(recorder, kernels.portable[block == 8 ? 0 : 1], launch);
  }
}

}  // namespace steadfast::cuda
