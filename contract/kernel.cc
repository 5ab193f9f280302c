// The verdicts of a case, and the list of kernels.
#include "contract/kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace steadfast::contract {

namespace {
constexpr std::size_t kMostFindings = 8;
}

void Gates::find(std::string sentence) {
  if (tally_->findings.size() < kMostFindings)
    tally_->findings.push_back(fmt::format("{}, {}: {}", tally_->kernel, case_->name, sentence));
}

void Gates::equal(const std::string& what, const float* got, const float* want, int rows, int width) {
  tally_->rows += rows;
  for (int row = 0; row < rows; ++row) {
    const auto at = static_cast<std::ptrdiff_t>(row) * width;
    const std::int64_t wrong = differing(got + at, want + at, static_cast<std::size_t>(width));
    if (wrong == 0) continue;
    tally_->differing += wrong;
    int first = 0;
    while (differing(got + at + first, want + at + first, 1) == 0) ++first;
    find(fmt::format("{}: row {}: {} of {} values differ, first at {}: {} against {}", what, row, wrong, width, first,
                     got[at + first], want[at + first]));
  }
}

void Gates::equal_bytes(const std::string& what, std::span<const std::byte> got, std::span<const std::byte> want,
                        int rows) {
  tally_->rows += rows;
  CHECK(got.size() == want.size(), "{} bytes compared with {}", got.size(), want.size());
  std::int64_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return;
  tally_->differing += wrong;
  find(fmt::format("{}: {} of {} bytes differ, first at {}", what, wrong, got.size(), first));
}

void Gates::within(const std::string& what, double share) {
  tally_->worst = std::max(tally_->worst, share);
  if (!(share <= 1)) find(fmt::format("{}: an error is {:.3g} times its bound", what, share));
}

void Gates::untouched(const std::string& what, bool damage) {
  if (!damage) return;
  ++tally_->overwritten;
  find(fmt::format("{}: memory outside the output was written", what));
}

void Gates::control(const std::string& what, bool red) {
  ++tally_->controls;
  if (red)
    ++tally_->caught;
  else
    find(fmt::format("the planted fault \"{}\" was not caught", what));
}

void reserve(Context& context, RoundLimits limits) {
  limits.rows = std::max(limits.rows, 1);
  limits.logit_rows = std::max(limits.logit_rows, 1);
  limits.vocab = std::max(limits.vocab, 16);
  limits.widest = std::max(limits.widest, 64);
  limits.positions = std::max<std::size_t>(limits.positions, 64);
  if (limits.shapes.attention.heads == 0) limits.shapes.attention = {1, 1, 64, 1};
  need(context.backend.reserve_round(limits));
  for (const Schedule& schedule : context.schedules) need(schedule.backend->reserve_round(limits));
}

std::int64_t differing(const float* got, const float* want, std::size_t count) {
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i)
    wrong += std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(want[i]);
  return wrong;
}

void Share::add(double got, double exact, double bound) {
  const double error = std::fabs(got - exact);
  if (!(error <= bound) && !(bound > 0 && std::isfinite(error)))
    worst_ = std::numeric_limits<double>::infinity();
  else if (bound > 0)
    worst_ = std::max(worst_, error / bound);
}

std::vector<int> batch_sizes(int most) {
  std::vector<int> sizes;
  for (const int rows : {1, 2, 7, 8, 9, 16, 33, 64, 65, 129, 300, 600, 1025})
    if (rows < most) sizes.push_back(rows);
  sizes.push_back(most);
  return sizes;
}

const std::vector<Kernel>& all_kernels() {
  static const std::vector<Kernel> kKernels = {
      linear_kernel(),    embed_kernel(),       rms_norm_kernel(), head_norm_kernel(), gated_norm_kernel(),
      silu_mul_kernel(),  sigmoid_mul_kernel(), copy_kernel(),     rope_kernel(),      store_kv_kernel(),
      attention_kernel(), delta_kernel(),       draw_kernel()};
  return kKernels;
}

const Kernel* find_kernel(const std::string& name) {
  for (const Kernel& kernel : all_kernels())
    if (kernel.name == name) return &kernel;
  return nullptr;
}

}  // namespace steadfast::contract
