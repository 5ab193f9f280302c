// Which linears link, how a stage is shared among blocks and warps, and the launch: the schedule of chains, no
// arithmetic.
#include "backend/cuda/linear_chain.h"

#include <algorithm>

#include "backend/cuda/linear_input.h"
#include "backend/cuda/linear_kernels.h"

namespace steadfast::cuda {
namespace {

constexpr const char* kNames[kMostStages] = {"linear",
                                             "linears, chain of 2",
                                             "linears, chain of 3",
                                             "linears, chain of 4",
                                             "linears, chain of 5",
                                             "linears, chain of 6"};

std::size_t row_bytes(int in) { return static_cast<std::size_t>(chunks_of(in)) * kChainRows * kChunkRowBytes; }
std::size_t square_bytes(int in) {
  return static_cast<std::size_t>(round_up(divide_up(in, kStripFeatures), 64)) * kChainRows * sizeof(float);
}

ChainStage stage_of(int in, std::span<const LinearJobArgs> jobs) {
  ChainStage stage;
  stage.in = in;
  stage.chunks = chunks_of(in);
  int strips = 0;
  for (const LinearJobArgs& job : jobs) {
    ChainJob& to = stage.jobs[stage.job_count++];
    to.weight = job.weight->data();
    to.out = job.out.data;
    to.bias = job.bias;
    to.add = job.add;
    to.stride = job.out.stride;
    to.features = job.out.width;
    while (1 << to.slice_shift < job.weight->slices()) ++to.slice_shift;
    CHECK(1 << to.slice_shift == job.weight->slices(), "a weight of {} slices", job.weight->slices());
    to.first_strip = strips;
    to.strips = divide_up(job.out.width, kStripFeatures);
    strips += to.strips;
  }
  stage.strips = strips;
  return stage;
}

// How the stage's units are shared among blocks and warps. first: the block that has the next one more.
void plan(ChainStage& stage, int& first, int grid) {
  const bool pairs = stage.ending == Ending::kSilu;
  const int units = pairs ? stage.jobs[0].strips : stage.strips, most = divide_up(units, grid);
  stage.units = units / grid;
  stage.more = units % grid;
  stage.rotation = (grid - first) % grid;
  first = (first + stage.more) % grid;
  if (pairs) {
    stage.team_shift = 1;
  } else {
    for (stage.team_shift = 2; stage.team_shift > 0; --stage.team_shift) {
      const bool divides = std::all_of(stage.jobs, stage.jobs + stage.job_count,
                                       [&](const ChainJob& job) { return job.slice_shift >= stage.team_shift; });
      if (divides && most << stage.team_shift <= kChainWarps) break;
    }
  }
  stage.passes = divide_up(most, kChainWarps >> stage.team_shift);
  stage.pass_units = divide_up(most, stage.passes);
  const int parts = pairs ? 0 : stage.team_shift;
  for (int part = 0; part < 1 << parts; ++part)
    stage.part_chunks = std::max(stage.part_chunks, shifted_slice_begin(stage.chunks, parts, part + 1) -
                                                        shifted_slice_begin(stage.chunks, parts, part));
  const int tiles = divide_up(units, kTileStrips);
  if (stage.job_count == 1 && tiles <= grid && divide_up(kTileStrips, grid / tiles) == most) {
    stage.sharers = std::min(grid / tiles, kTileStrips);
    first = 0;
  }
}

void launch(Recorder& recorder, Form form, std::span<const ChainStage> stages, int rows) {
  const ChainKernel& kernel = kernels_of(form).chain;
  const int grid = recorder.card().multiprocessors;
  LinearChain chain;
  int first = 0;
  for (const ChainStage& stage : stages) {
    ChainStage& to = chain.stages[chain.stage_count];
    to = stage;
    plan(to, first, grid);
    ++chain.stage_count;
  }
  chain.counters = recorder.counters();
  chain.rows = rows;
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(grid);
  shape.block.x = kChainThreads;
  shape.shared = static_cast<std::size_t>(kernel.shared_bytes);
  shape.early = true;
  recorder.launch(kNames[chain.stage_count - 1], kernel.kernel, shape, chain);
}

bool same_rows(const float* data, std::int64_t stride, int width, const Matrix& m) {
  return data == m.data && stride == m.stride && width == m.width;
}

}  // namespace

std::size_t LinearChains::bytes(int in) { return 2 * (row_bytes(in) + square_bytes(in)) + kChainRows * sizeof(float); }

void LinearChains::use_memory(void* memory, int in) {
  CHECK(stages_.empty(), "memory of chains changed while {} linears are held back", stages_.size());
  auto* at = static_cast<std::uint8_t*>(memory);
  for (int i = 0; i < 2; ++i) {
    rows_[i] = at;
    squares_[i] = reinterpret_cast<float*>(at + row_bytes(in));
    at += row_bytes(in) + square_bytes(in);
  }
  factors_ = reinterpret_cast<float*>(at);
  most_in_ = in;
}

bool LinearChains::suits(const Recorder& recorder, const LinearInput& input,
                         std::span<const LinearJobArgs> jobs) const {
  if (!recorder.card().wgmma() || input.x.rows > kChainRows || jobs.size() > kMostJobs) return false;
  const Form form = jobs.front().weight->form();
  const auto fits = [&](const LinearJobArgs& job) {
    return job.weight->form() == form && job.weight->in() == input.x.width;
  };
  return input.x.width <= most_in_ && std::all_of(jobs.begin(), jobs.end(), fits);
}

// Whether the newest stage can leave its rows as `next` wants them; then it is told to, and next reads them.
bool LinearChains::link(const LinearInput& input, ChainStage& next) {
  if (stages_.empty() || input.x.rows != row_count_) return false;
  ChainStage& last = stages_.back();
  const ChainJob &first = last.jobs[0], &second = last.jobs[1];
  if (input.prologue == Prologue::kRmsNorm && last.job_count == 1 &&
      same_rows(first.out, first.stride, first.features, input.x)) {
    last.ending = Ending::kNormed;
    last.gain = input.weight;
    last.next_squares = squares_[current_ ^ 1];
    next.squares = last.next_squares;
    next.eps = input.eps;
  } else if (input.prologue == Prologue::kSiluMul && last.job_count == 2 && first.slice_shift == second.slice_shift &&
             first.add == nullptr && second.add == nullptr &&
             same_rows(first.out, first.stride, first.features, input.x) &&
             same_rows(second.out, second.stride, second.features, input.gate)) {
    last.ending = Ending::kSilu;
  } else {
    return false;
  }
  last.next_x = rows_[current_ ^ 1];
  last.next_chunks = next.chunks;
  next.x = last.next_x;
  return true;
}

bool LinearChains::add(Recorder& recorder, const LinearInput& input, std::span<const LinearJobArgs> jobs) {
  if (input.x.rows == 0 || jobs.empty()) return true;
  if (!suits(recorder, input, jobs)) {
    flush(recorder);
    return false;
  }
  const Form form = jobs.front().weight->form();
  ChainStage stage = stage_of(input.x.width, jobs);
  if (link(input, stage)) {
    if (form != form_ || stages_.size() == kMostStages) flush(recorder);
  } else {
    flush(recorder);
    stage.x = rows_[current_ ^ 1];
    if (input.prologue == Prologue::kRmsNorm) stage.factors = factors_;
    write_linear_input(recorder, input, input.x.rows, rows_[current_ ^ 1], factors_);
  }
  current_ ^= 1;
  form_ = form;
  row_count_ = input.x.rows;
  stages_.push_back(stage);
  return true;
}

void LinearChains::flush(Recorder& recorder) {
  if (stages_.empty()) return;
  launch(recorder, form_, stages_, row_count_);
  stages_.clear();
}

void launch_chain_of_one(Recorder& recorder, const std::uint8_t* x, const float* factors, int rows, int in,
                         std::span<const LinearJobArgs> jobs) {
  ChainStage stage = stage_of(in, jobs);
  stage.x = x;
  stage.factors = factors;
  launch(recorder, jobs.front().weight->form(), {&stage, 1}, rows);
}

}  // namespace steadfast::cuda
