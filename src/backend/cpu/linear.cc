// Linear on the CPU: x is quantised (or copied) once, then tiles and row blocks are shared out among the threads.
#include <algorithm>

#include "backend/cpu/cpu_backend_impl.h"

namespace steadfast::cpu {
namespace {

const PackedWeight& packed(const LinearJob& job) { return static_cast<const PackedWeight&>(*job.weight); }

// A unit of work: some tiles of one job for some rows.
struct Unit {
  int job, first_tile, last_tile, first_row, last_row;
};

// Few rows: about 8 units a thread over all jobs, so that a slow core does not hold up the others.
// Many rows: blocks of 64 rows that stay in cache beside 16 tiles.
void plan(std::span<const LinearJob> jobs, int rows, int threads, std::vector<Unit>& units) {
  int all_tiles = 0;
  for (const auto& job : jobs) all_tiles += packed(job).tiles();
  const int row_block = rows <= 16 ? rows : 64;
  const int row_blocks = (rows + row_block - 1) / row_block;
  const int wanted = std::max(1, threads * 8 / row_blocks);
  int tile_block = std::max(2, (all_tiles + wanted - 1) / wanted);
  tile_block = std::min(tile_block + tile_block % 2, row_blocks > 1 ? 16 : 1 << 20);
  for (int first_row = 0; first_row < rows; first_row += row_block)
    for (int j = 0; j < static_cast<int>(jobs.size()); ++j)
      for (int tile = 0, tiles = packed(jobs[static_cast<std::size_t>(j)]).tiles(); tile < tiles; tile += tile_block)
        units.push_back(
            {j, tile, std::min(tile + tile_block, tiles), first_row, std::min(first_row + row_block, rows)});
}

}  // namespace

const CpuBackend::Quantised& CpuBackend::quantised(int group, bool fine) const {
  for (const auto& entry : quantised_)
    if (entry.group == group && entry.fine == fine) return entry;
  CHECK(false, "no rows quantised in groups of {}", group);
}

void CpuBackend::prepare(const Matrix& x, std::span<const LinearJob> jobs, Act act) {
  const auto rows = static_cast<std::size_t>(x.rows), width = static_cast<std::size_t>(x.width);
  bool plain = false;
  for (auto& entry : quantised_) entry.group = 0;
  std::size_t used = 0;
  for (const auto& job : jobs) {
    const PackedWeight& weight = packed(job);
    if (act != Act::kInt8 || !weight.is_affine()) {
      plain = true;
      continue;
    }
    const int group = weight.affine().group;
    const auto known = [&](const Quantised& entry) { return entry.group == group && entry.fine == job.fine; };
    if (std::any_of(quantised_.begin(), quantised_.end(), known)) continue;
    if (used == quantised_.size()) quantised_.emplace_back();
    Quantised& entry = quantised_[used++];
    entry.group = group;
    entry.fine = job.fine;
    const std::size_t groups = width / static_cast<std::size_t>(group);
    if (entry.codes.size() < rows * width) entry.codes.resize(rows * width);
    if (job.fine && entry.low.size() < rows * width) entry.low.resize(rows * width);
    if (entry.scales.size() < rows * groups) entry.scales.resize(rows * groups), entry.sums.resize(rows * groups);
    over_rows(team_, x.rows, [&](int row) {
      const auto r = static_cast<std::size_t>(row);
      kernels_->quantise(x.row(row), x.width, group, entry.codes.data() + r * width,
                         entry.fine ? entry.low.data() + r * width : nullptr, entry.scales.data() + r * groups,
                         entry.sums.data() + r * groups);
    });
  }
  if (!plain) return;
  if (plain_.size() < rows * width) plain_.resize(rows * width);
  for (int row = 0; row < x.rows; ++row) {
    float* to = plain_.data() + static_cast<std::size_t>(row) * width;
    if (act == Act::kBF16)
      kernels_->round_bf16(x.row(row), x.width, to);
    else
      std::copy_n(x.row(row), width, to);
  }
}

void CpuBackend::linear(const Matrix& x, std::span<const LinearJob> jobs) {
  if (x.rows == 0 || jobs.empty()) return;
  const Act act = jobs[0].prompt ? prompt_act_ : act_;
  prepare(x, jobs, act);
  std::vector<Unit> units;
  plan(jobs, x.rows, team_.threads(), units);
  const bool round = act == Act::kBF16;
  team_.run(static_cast<int>(units.size()), [&](int index, int) {
    const Unit& unit = units[static_cast<std::size_t>(index)];
    const LinearJob& job = jobs[static_cast<std::size_t>(unit.job)];
    const PackedWeight& weight = packed(job);
    const LinearOutput out{job.out.data, job.out.stride, job.bias, job.add};
    if (!weight.is_affine()) {
      kernels_->linear_dense(weight.dense(), plain_.data(), round, out, unit.first_tile, unit.last_tile, unit.first_row,
                             unit.last_row);
    } else if (act == Act::kInt8) {
      const Quantised& rows = quantised(weight.affine().group, job.fine);
      const QuantRows view{rows.codes.data(), job.fine ? rows.low.data() : nullptr, rows.scales.data(),
                           rows.sums.data()};
      kernels_->linear_int8(weight.affine(), view, out, unit.first_tile, unit.last_tile, unit.first_row, unit.last_row);
    } else {
      kernels_->linear_f32(weight.affine(), plain_.data(), round, out, unit.first_tile, unit.last_tile, unit.first_row,
                           unit.last_row);
    }
  });
}

}  // namespace steadfast::cpu
