// int8_check: int8 linears (linear_int8.h) on this card, every form of weights and group. Against float64: of the
// quantised rows within |error| <= (2 groups + 3) 2^-24 * sum of the terms' sizes (two fused multiply-adds and a
// product a group), of the rows themselves within that and half a step of every code. Bits: any number of rows at any
// place, every schedule, beside other jobs, with bias and residual, equal all rows at once. Outputs are poisoned
// before, canaries behind each row checked; planted faults must show. int8_check smallest: a little of all, for
// compute-sanitizer.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>

#include "backend/cuda/elementwise.h"
#include "backend/cuda/linear_int8.h"
#include "backend/cuda/norm.h"
#include "linear_bench.h"

namespace steadfast::bench {
namespace {

using cuda::Int8Schedule;
using cuda::LinearInput;
using cuda::LinearJobArgs;

constexpr int kCanary = 5;
constexpr float kCanaryValue = 12345.5f;
int failures = 0;

void report(const std::string& what, bool fine) {
  if (!fine) ++failures;
  std::printf("%s: %s\n", fine ? "ok  " : "FAIL", what.c_str());
  std::fflush(stdout);
}

void upload(const DeviceArray<float>& to, const std::vector<float>& from) {
  need(cudaMemcpy(to.data, from.data(), to.size * sizeof(float), cudaMemcpyHostToDevice));
}

struct Job {
  WeightShape shape;
  RandomAffine reader;
  std::unique_ptr<Weight> weight;
  std::vector<float> want, add_host, bias_host;
  DeviceArray<float> got, bias;
  int stride;

  Job(Bench& bench, const WeightShape& s, int rows, std::uint64_t seed)
      : shape(s),
        reader(s.out, s.in, s.bits, s.group, s.scales, seed, s.largest),
        weight(bench.pack(reader)),
        add_host(random_rows(rows, s.out + kCanary, seed + 5)),
        bias_host(random_rows(1, s.out, seed + 6)),
        got(add_host.size()),
        bias(bias_host),
        stride(s.out + kCanary) {}
};

class Case {
 public:
  Case(Bench& bench, const std::string& name, const std::vector<WeightShape>& shapes, int rows)
      : bench_(bench), name_(name), rows_(rows), in_(shapes[0].in), x_host_(random_rows(rows, in_, 77)), x_(x_host_) {
    for (std::size_t j = 0; j < shapes.size(); ++j)
      jobs_.push_back(std::make_unique<Job>(bench, shapes[j], rows, 1000 * j + static_cast<std::uint64_t>(in_)));
    for (auto& job : jobs_) job->want = run(*job, rows);
  }

  // float64, with the codes that the arithmetic has.
  void check_double() {
    double worst = 0, worst_exact = 0, square = 0, norm = 0;
    for (const auto& job : jobs_) {
      const int group = job->shape.group == 32 ? 32 : 64;
      for (int n = 0; n < 24; ++n) {
        const int feature =
            n == 0 ? job->shape.out - 1
                   : static_cast<int>(mix(static_cast<std::uint64_t>(n)) % static_cast<std::uint64_t>(job->shape.out));
        for (const int row : {0, rows_ / 2, rows_ - 1}) {
          const Expected e = expected(*job, feature, row, group);
          const double got = job->want[static_cast<std::size_t>(row) * static_cast<std::size_t>(job->stride) +
                                       static_cast<std::size_t>(feature)];
          const double bound = (2.0 * in_ / group + 3) * 0x1p-24 * e.size;
          worst = std::max(worst, std::fabs(got - e.sum) / bound);
          worst_exact = std::max(worst_exact, std::fabs(got - e.exact) / (e.steps + bound));
          square += (got - e.exact) * (got - e.exact), norm += e.exact * e.exact;
        }
      }
    }
    report(fmt::format("{}: float64, worst {:.3f} of the bound; of rows not quantised {:.3f}, error {:.1e} of the norm",
                       name_, worst, worst_exact, std::sqrt(square / norm)),
           worst <= 1 && worst_exact <= 1);
  }

  void check_bits(const std::vector<int>& row_counts) {
    std::size_t all = 0;
    int runs = 0;
    std::string where;
    for (const int rows : row_counts) {
      if (rows > rows_) continue;
      for (const Int8Schedule schedule :
           {Int8Schedule::kMany, Int8Schedule::kFew, Int8Schedule::kLeast, Int8Schedule::kAuto})
        for (const int first : {0, (rows_ - rows) / 2, rows_ - rows}) {
          const std::size_t wrong = differing(first, rows, schedule, runs % 3);
          if (wrong != 0 && where.empty())
            where = fmt::format(", first: {} rows from {} on, schedule {}, extras {}: {}", rows, first,
                                static_cast<int>(schedule), runs % 3, wrong);
          all += wrong, ++runs;
        }
    }
    report(fmt::format("{}: bits, {} runs, {} differing{}", name_, runs, all, where), all == 0);
  }

  // A fault must show: a code changed, rows exchanged, the last inputs gone; a row that is no number is the only one.
  void check_controls() {
    Job& job = *jobs_[0];
    auto* byte = const_cast<std::uint8_t*>(on_card(job.weight)->data()) + 36;
    std::uint8_t value = 0;
    need(cudaMemcpy(&value, byte, 1, cudaMemcpyDeviceToHost));
    const auto changed = static_cast<std::uint8_t>(value ^ 0x04);
    need(cudaMemcpy(byte, &changed, 1, cudaMemcpyHostToDevice));
    const std::size_t code = differing(0, 8, Int8Schedule::kAuto, 0);
    need(cudaMemcpy(byte, &value, 1, cudaMemcpyHostToDevice));
    const std::size_t mended = differing(0, 8, Int8Schedule::kAuto, 0);
    std::vector<float> x = x_host_;
    std::swap_ranges(x.begin(), x.begin() + in_, x.begin() + in_);
    upload(x_, x);
    const std::size_t swapped = differing(0, 8, Int8Schedule::kAuto, 0);
    x = x_host_;
    std::fill(x.begin() + in_ - 16, x.begin() + in_, 0.0f);
    upload(x_, x);
    const std::size_t tail = differing(0, 8, Int8Schedule::kAuto, 0);
    x = x_host_;
    x[static_cast<std::size_t>(in_) * 3 + 7] = std::numeric_limits<float>::quiet_NaN();
    x[static_cast<std::size_t>(in_) * 5 + 1] = std::numeric_limits<float>::infinity();
    upload(x_, x);
    const std::vector<float> broken = run(job, 8);
    bool seen = true;
    for (int r = 0; r < 8; ++r)
      for (int f = 0; f < job.shape.out; ++f) {
        const float y = broken[static_cast<std::size_t>(r * job.stride + f)];
        seen = seen &&
               (r == 3 || r == 5 ? !std::isfinite(y) : y == job.want[static_cast<std::size_t>(r * job.stride + f)]);
      }
    upload(x_, x_host_);
    report(fmt::format("{}: controls: code {}, mended {}, rows exchanged {}, tail dropped {}, not a number {}", name_,
                       code, mended, swapped, tail, seen ? "seen" : "LOST"),
           code != 0 && mended == 0 && swapped != 0 && tail != 0 && seen);
  }

 private:
  struct Expected {
    double sum = 0, size = 0;     // of the quantised row, and of its terms' sizes
    double exact = 0, steps = 0;  // of the row itself, and half a step of every code
  };

  Matrix x(int first, int rows) const { return {x_.data + static_cast<std::ptrdiff_t>(first) * in_, rows, in_}; }

  std::vector<float> run(const Job& job, int rows) {
    std::vector<float> poison(static_cast<std::size_t>(rows) * static_cast<std::size_t>(job.stride), -7.25f);
    need(cudaMemcpy(job.got.data, poison.data(), poison.size() * 4, cudaMemcpyHostToDevice));
    linear_int8(
        *bench_.recorder, LinearInput::plain(x(0, rows)),
        std::vector<LinearJobArgs>{{on_card(job.weight), Matrix(job.got.data, rows, job.shape.out, job.stride)}},
        Int8Schedule::kFew);
    bench_.finish();
    need(cudaMemcpy(poison.data(), job.got.data, poison.size() * 4, cudaMemcpyDeviceToHost));
    return poison;
  }

  Expected expected(const Job& job, int feature, int row, int group) const {
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(in_));
    std::vector<float> scales(static_cast<std::size_t>(job.reader.groups())), biases(scales.size());
    job.reader.read(feature, codes.data(), scales.data(), biases.data());
    const float* from = x_host_.data() + static_cast<std::ptrdiff_t>(row) * in_;
    Expected e;
    for (int first = 0; first < in_; first += group) {
      const auto g = static_cast<std::size_t>(first / job.shape.group);
      float largest = 0;
      for (int k = first; k < first + group; ++k) largest = std::max(largest, std::fabs(from[k]));
      const float factor = largest > 0 ? 127.0f / largest : 0, scale = largest / 127.0f;
      double dot = 0, sum = 0, weights = 0;
      for (int k = first; k < first + group; ++k) {
        const double code = std::nearbyint(from[k] * factor), weight_code = codes[static_cast<std::size_t>(k)];
        const double weight = weight_code * scales[g] + biases[g];
        dot += weight_code * code, sum += code, weights += std::fabs(weight);
        e.exact += weight * from[k];
      }
      const double product = dot * scales[g] * scale, offset = sum * biases[g] * scale;
      e.sum += product + offset;
      e.size += std::fabs(product) + std::fabs(offset);
      e.steps += weights * scale * 0.50001;
    }
    return e;
  }

  // Elements that differ, over all jobs, of rows [first, first + rows) computed together.
  std::size_t differing(int first, int rows, Int8Schedule schedule, int extras) {
    std::vector<LinearJobArgs> args;
    for (auto& job : jobs_) {
      const std::size_t size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(job->stride);
      std::vector<float> before(job->add_host.begin(), job->add_host.begin() + static_cast<std::ptrdiff_t>(size));
      for (std::size_t i = 0; i < size; ++i) {
        const bool canary = static_cast<int>(i % static_cast<std::size_t>(job->stride)) >= job->shape.out;
        if (canary)
          before[i] = kCanaryValue;
        else if (extras < 2)
          before[i] = -7.25f;
      }
      need(cudaMemcpy(job->got.data, before.data(), size * 4, cudaMemcpyHostToDevice));
      LinearJobArgs arg{on_card(job->weight), Matrix(job->got.data, rows, job->shape.out, job->stride)};
      if (extras >= 1) arg.bias = job->bias.data;
      if (extras == 2) arg.add = job->got.data;  // in place
      args.push_back(arg);
    }
    linear_int8(*bench_.recorder, LinearInput::plain(x(first, rows)), args, schedule);
    bench_.finish();
    std::size_t wrong = 0;
    for (auto& job : jobs_) {
      const auto stride = static_cast<std::size_t>(job->stride);
      std::vector<float> got(static_cast<std::size_t>(rows) * stride);
      need(cudaMemcpy(got.data(), job->got.data, got.size() * 4, cudaMemcpyDeviceToHost));
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t column = i % stride;
        float want = kCanaryValue;
        if (column < static_cast<std::size_t>(job->shape.out)) {
          want = job->want[static_cast<std::size_t>(first) * stride + i];
          if (extras >= 1) want += job->bias_host[column];
          if (extras == 2) want += job->add_host[i];
        }
        wrong += std::memcmp(&got[i], &want, 4) != 0;
      }
    }
    return wrong;
  }

  Bench& bench_;
  std::string name_;
  int rows_, in_;
  std::vector<float> x_host_;
  DeviceArray<float> x_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

// Each prologue gives the bits of its op followed by the plain one.
void check_prologues(Bench& bench, int rows, int heads, int dim, int group) {
  const int width = heads * dim, out = 80;
  DeviceArray<float> x(random_rows(rows, width, 3)), gate(random_rows(rows, width, 4)),
      weight(random_rows(1, width, 5));
  DeviceArray<float> made(x.size), want(static_cast<std::size_t>(rows) * out), got(want.size);
  const std::unique_ptr<Weight> packed = bench.pack(RandomAffine(out, width, 4, group, DType::kBF16, 9));
  const Matrix in(x.data, rows, width), gates(gate.data, rows, width), through(made.data, rows, width);
  cuda::Recorder& r = *bench.recorder;
  const auto same = [&](const char* name, const LinearInput& fused) {
    linear_int8(r, LinearInput::plain(through),
                std::vector<LinearJobArgs>{{on_card(packed), Matrix(want.data, rows, out)}});
    bench.finish();
    need(cudaMemset(got.data, 0xFF, got.size * 4));
    linear_int8(r, fused, std::vector<LinearJobArgs>{{on_card(packed), Matrix(got.data, rows, out)}});
    bench.finish();
    const std::vector<float> a = want.host(), b = got.host();
    report(fmt::format("prologue {}, {} rows of {} heads of {}, groups of {}", name, rows, heads, dim, group),
           std::memcmp(a.data(), b.data(), a.size() * 4) == 0 && a[0] == a[0] && a[0] != 0);
  };
  cuda::rms_norm(r, in, weight.data, 1e-6f, through);
  same("rms_norm", LinearInput::rms_norm(in, weight.data, 1e-6f));
  cuda::silu_mul(r, in, gates, through);
  same("silu_mul", LinearInput::silu_mul(in, gates));
  cuda::sigmoid_mul(r, in, gates, through);
  same("sigmoid_mul", LinearInput::sigmoid_mul(in, gates));
  cuda::gated_norm(r, in, gates, heads, dim, weight.data, 1e-6f, through);
  same("gated_norm", LinearInput::gated_norm(in, gates, heads, dim, weight.data, 1e-6f));
}

void run(Bench& bench, const std::string& name, const std::vector<WeightShape>& shapes, int rows,
         const std::vector<int>& counts, bool controls) {
  Case c(bench, name, shapes, rows);
  c.check_double();
  c.check_bits(counts);
  if (controls) c.check_controls();
}

// For compute-sanitizer.
int check_smallest() {
  Bench bench(256, 1280);
  for (const int bits : {4, 8})
    for (const int group : {32, 64})
      run(bench, fmt::format("{} bits, groups of {}", bits, group), {{72, 128 * 3, bits, group, DType::kBF16}}, 140,
          {1, 33, 130}, false);
  run(bench, "several", {{64, 1024}, {24, 1024}, {200, 1024, 8, 32, DType::kF16}}, 140, {1, 65, 140}, true);
  check_prologues(bench, 3, 6, 32, 64);
  check_prologues(bench, 70, 4, 128, 32);
  std::printf("%s: %d failures\n", failures == 0 ? "all fine" : "FAILED", failures);
  return failures == 0 ? 0 : 1;
}

int check() {
  Bench bench(1024, 17408);
  const std::vector<int> few = {1, 2, 7, 8, 31, 32, 33, 100, 127, 128, 129, 200}, quick = {1, 3, 29, 33, 65, 130};
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128})
      for (const DType scales : {DType::kBF16, DType::kF16, DType::kF32}) {
        if (scales == DType::kF32 && bits != 4 && bits != 8) continue;
        run(bench, fmt::format("{} bits, groups of {}, {}", bits, group, info(scales).name),
            {{200, 128 * 9 + (group == 32 ? 32 : 0), bits, group, scales}}, 140, quick,
            (bits == 4 && group == 64) || (bits == 8 && group == 32));
      }
  run(bench, "scale too large for bf16 codes",
      {{64, 256, 4, 64, DType::kBF16, 40.0f}, {64, 256, 8, 64, DType::kBF16, 40.0f}}, 70, quick, false);
  run(bench, "tiny", {{1, 64, 4, 64}, {17, 64, 4, 64}}, 70, quick, true);
  run(bench, "forms and groups mixed", {{320, 96, 4, 32}, {48, 96, 8, 32}, {8, 96, 8, 32, DType::kF16}}, 200, few,
      true);
  run(bench, "SmolLM2's width",
      {{576, 576, 8, 32, DType::kF16}, {192, 576, 8, 32, DType::kF16}, {192, 576, 4, 64, DType::kF16}}, 200, few,
      false);
  run(bench, "27B gate and up", {{17408, 5120}, {17408, 5120}}, 300, {1, 33, 257, 300}, true);
  run(bench, "27B delta", {{10240, 5120}, {6144, 5120}, {48, 5120}, {48, 5120}}, 300, {1, 128, 300}, false);
  run(bench, "27B down", {{5120, 17408}}, 520, {1, 31, 200, 512}, true);
  for (const int group : {32, 64})
    for (const auto& [rows, heads, dim] : {std::array{1, 48, 128}, {3, 6, 32}, {70, 40, 128}, {2, 68, 256}})
      check_prologues(bench, rows, heads, dim, group);
  std::printf("%s: %d failures\n", failures == 0 ? "all fine" : "FAILED", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace steadfast::bench

int main(int argc, char** argv) {
  const bool smallest = argc > 1 && std::string(argv[1]) == "smallest";
  return smallest ? steadfast::bench::check_smallest() : steadfast::bench::check();
}
