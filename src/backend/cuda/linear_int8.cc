// Plans of int8 linears: jobs by group and form, blocks of many or of few rows.
#include "backend/cuda/linear_int8.h"

#include <algorithm>
#include <vector>

#include "backend/cuda/int8_rows.h"

namespace steadfast::cuda {
namespace {

constexpr int kPaddedRows = 64;  // a multiple of every block's rows

// Groups of 128 are taken as two of 64.
int group_of(const CudaWeight& weight) { return weight.group() == 32 ? 32 : 64; }

const Int8Kernels& kernels_of(const CudaWeight& weight) {
  switch (weight.form()) {
    case Form::kFour:
      return int8_four_kernels();
    case Form::kFourSplit:
      return int8_four_split_kernels();
    case Form::kFourFloat:
      return int8_four_float_kernels(group_of(weight));
    case Form::kEight:
      return int8_eight_kernels(group_of(weight));
    case Form::kEightFloat:
      return int8_eight_float_kernels(group_of(weight));
    case Form::kDense:
      break;
  }
  CHECK(false, "no int8 kernels for form {}", static_cast<int>(weight.form()));
}

std::size_t code_bytes(int padded_rows, int in) {
  return static_cast<std::size_t>(chunks_of(in)) * static_cast<std::size_t>(padded_rows) * kChunk;
}

std::size_t row_bytes(int padded_rows, int in, int group) {
  return code_bytes(padded_rows, in) + static_cast<std::size_t>(chunks_of(in) * (kChunk / group)) *
                                           static_cast<std::size_t>(padded_rows) * 2 * sizeof(float);
}

// Large blocks read less, small ones fill a card sooner: borders measured on an H200.
const Int8Kernel& choose(const CardTraits& card, const Int8Kernels& kernels, int tiles, int rows,
                         Int8Schedule schedule) {
  const auto blocks = [&](const Int8Kernel& kernel) {
    return tiles * (kTileStrips / kernel.strips) * divide_up(rows, kernel.rows);
  };
  const bool fills = rows > kernels.few.rows && blocks(kernels.many) * 2 >= card.multiprocessors * 3;
  if (schedule == Int8Schedule::kAuto)
    schedule = fills                                         ? Int8Schedule::kMany
               : blocks(kernels.few) >= card.multiprocessors ? Int8Schedule::kFew
                                                             : Int8Schedule::kLeast;
  return schedule == Int8Schedule::kMany ? kernels.many : schedule == Int8Schedule::kFew ? kernels.few : kernels.least;
}

// Jobs of one form and group, which share the quantised rows.
void launch(Recorder& recorder, std::span<const LinearJobArgs> jobs, const QuantisedRows& rows, int count,
            Int8Schedule schedule) {
  Int8Launch launch;
  for (const LinearJobArgs& job : jobs) {
    launch.jobs[launch.job_count++] = {
        job.weight->data(), job.out.data,        job.bias, job.add, job.out.stride, job.out.width,
        launch.tiles,       job.weight->tiles(), 1};
    launch.tiles += job.weight->tiles();
  }
  launch.codes = rows.codes;
  launch.scales = rows.scales;
  launch.rows = count;
  launch.padded_rows = rows.padded_rows;
  launch.chunks = rows.chunks;
  const Int8Kernel& kernel = choose(recorder.card(), kernels_of(*jobs[0].weight), launch.tiles, count, schedule);
  launch.row_blocks = divide_up(count, kernel.rows);
  const int feature_blocks = launch.tiles * (kTileStrips / kernel.strips);
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(feature_blocks * launch.row_blocks);
  shape.block.x = static_cast<unsigned>(kernel.threads);
  shape.shared = static_cast<std::size_t>(kernel.shared_bytes);
  shape.early = true;
  recorder.launch(kernel.name, kernel.kernel, shape, launch);
}

}  // namespace

std::size_t int8_scratch_bytes(int rows, int in) { return row_bytes(round_up(rows, kPaddedRows), in, 32); }

void linear_int8(Recorder& recorder, const LinearInput& input, std::span<const LinearJobArgs> jobs,
                 Int8Schedule schedule) {
  const int rows = input.x.rows;
  if (rows == 0 || jobs.empty()) return;
  std::vector<LinearJobArgs> dense;
  for (const LinearJobArgs& job : jobs) {
    CHECK(job.weight->in() == input.x.width, "linear: weight reads {} inputs, x has {}", job.weight->in(),
          input.x.width);
    if (job.weight->form() == Form::kDense) dense.push_back(job);
  }
  const int padded = round_up(rows, kPaddedRows);
  for (const int group : {32, 64}) {
    std::vector<LinearJobArgs> left;
    for (const LinearJobArgs& job : jobs)
      if (job.weight->form() != Form::kDense && group_of(*job.weight) == group) left.push_back(job);
    if (left.empty()) continue;
    auto* base = static_cast<std::uint8_t*>(recorder.scratch(row_bytes(padded, input.x.width, group)));
    const QuantisedRows to{reinterpret_cast<std::int8_t*>(base),
                           reinterpret_cast<float*>(base + code_bytes(padded, input.x.width)),
                           padded,
                           chunks_of(input.x.width),
                           group,
                           0};
    quantise_rows(recorder, input, to);
    while (!left.empty()) {
      const Form form = left[0].weight->form();
      std::vector<LinearJobArgs> together, others;
      for (const LinearJobArgs& job : left)
        (job.weight->form() == form && together.size() < kMostJobs ? together : others).push_back(job);
      launch(recorder, together, to, rows, schedule);
      left = std::move(others);
    }
  }
  linear(recorder, input, dense);
}

}  // namespace steadfast::cuda
