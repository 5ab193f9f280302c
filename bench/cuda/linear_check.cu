// linear_check: every form of weights and schedule of linears on this card. Sums against float64 within
//   |error| <= (k16 steps + slices) * 2^-22 * sum |w x|   (a step's 16 products and its sum, each cut below 2^-23)
// and bits: any number of rows at any place, every schedule, beside other jobs, with bias and residual, equal the
// portable kernel's run over all rows. Outputs are poisoned before, canaries behind each row checked; planted faults
// must show.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>

#include "backend/cuda/elementwise.h"
#include "backend/cuda/linear_chain.h"
#include "backend/cuda/norm.h"
#include "linear_bench.h"

namespace steadfast::bench {
namespace {

using cuda::LinearInput;
using cuda::LinearJobArgs;
using cuda::LinearSchedule;

constexpr int kCanary = 5;
constexpr float kCanaryValue = 12345.5f;
int failures = 0;

void report(const std::string& what, bool fine) {
  if (!fine) ++failures;
  std::printf("%s: %s\n", fine ? "ok  " : "FAIL", what.c_str());
}

__global__ void poison(float* out, std::size_t count, int width, int stride, const float* add) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i >= count) return;
  const int column = static_cast<int>(i % stride);
  out[i] = column >= width ? kCanaryValue : add != nullptr ? add[i] : __uint_as_float(0xFFFFDEADu);
}

// Counts elements whose bits are not those of want + bias + add, and canaries that changed.
__global__ void compare(const float* got, const float* want, const float* bias, const float* add, std::size_t count,
                        int width, int stride, unsigned* differing) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i >= count) return;
  const int column = static_cast<int>(i % stride);
  float expected = kCanaryValue;
  if (column < width) {
    expected = want[i];
    if (bias != nullptr) expected += bias[column];
    if (add != nullptr) expected += add[i];
  }
  if (__float_as_uint(got[i]) != __float_as_uint(expected)) atomicAdd(differing, 1u);
}

unsigned blocks_of(std::size_t count) { return static_cast<unsigned>((count + 255) / 256); }

struct Job {
  WeightShape shape;
  RandomAffine reader;
  std::unique_ptr<Weight> weight;
  DeviceArray<float> want, got, add, bias;
  int stride;

  Job(Bench& bench, const WeightShape& s, int rows, std::uint64_t seed)
      : shape(s),
        reader(s.out, s.in, s.bits, s.group, s.scales, seed, s.largest),
        weight(s.dense ? bench.pack_expanded(reader) : bench.pack(reader)),
        want(static_cast<std::size_t>(rows) * static_cast<std::size_t>(s.out + kCanary)),
        got(want.size),
        add(random_rows(rows, s.out + kCanary, seed + 5)),
        bias(random_rows(1, s.out, seed + 6)),
        stride(s.out + kCanary) {}
};

class Case {
 public:
  Case(Bench& bench, const std::string& name, const std::vector<WeightShape>& shapes, int rows)
      : bench_(bench), name_(name), rows_(rows), in_(shapes[0].in), x_host_(random_rows(rows, in_, 77)), x_(x_host_) {
    for (std::size_t j = 0; j < shapes.size(); ++j)
      jobs_.push_back(std::make_unique<Job>(bench, shapes[j], rows, 1000 * j + static_cast<std::uint64_t>(in_)));
    for (auto& job : jobs_) {  // the reference: each job alone, all rows, the portable kernel
      fill(*job, job->want, rows, nullptr);
      const Matrix out(job->want.data, rows, job->shape.out, job->stride);
      cuda::linear(*bench_.recorder, LinearInput::plain(x(0, rows)),
                   std::vector<LinearJobArgs>{{on_card(job->weight), out}}, LinearSchedule::kPortable);
      bench_.finish();
    }
  }

  Matrix x(int first, int rows) const { return {x_.data + static_cast<std::ptrdiff_t>(first) * in_, rows, in_}; }

  void check_double() {
    double worst = 0, square = 0, norm = 0;
    bool fine = true;
    for (auto& job : jobs_) {
      const std::vector<float> got = job->want.host();
      const cuda::CudaWeight& weight = *on_card(job->weight);
      const double steps = cuda::divide_up(in_, 16) + weight.slices();
      for (int n = 0; n < 24; ++n) {
        const int feature =
            static_cast<int>(mix(static_cast<std::uint64_t>(n)) % static_cast<std::uint64_t>(job->shape.out));
        const std::vector<double> w =
            job->reader.expanded(n == 0 ? job->shape.out - 1 : feature, cuda::float_scales(weight.form()));
        for (const int row : {0, rows_ / 2, rows_ - 1}) {
          double sum = 0, size = 0;
          for (int k = 0; k < in_; ++k) {
            const double term = w[static_cast<std::size_t>(k)] *
                                bf16(x_host_[static_cast<std::size_t>(row) * static_cast<std::size_t>(in_) +
                                             static_cast<std::size_t>(k)]);
            sum += term, size += std::fabs(term);
          }
          const double error = got[static_cast<std::size_t>(row) * static_cast<std::size_t>(job->stride) +
                                   static_cast<std::size_t>(n == 0 ? job->shape.out - 1 : feature)] -
                               sum;
          worst = std::max(worst, std::fabs(error) / (steps * 0x1p-22 * size));
          if (!(std::fabs(error) <= steps * 0x1p-22 * size)) fine = false;
          square += error * error, norm += sum * sum;
        }
      }
    }
    report(fmt::format("{}: float64, error {:.1e} of the norm, worst {:.3f} of the bound", name_,
                       std::sqrt(square / norm), worst),
           fine);
  }

  // Elements that differ, over all jobs, of rows [first, first + rows) computed together.
  unsigned differing(int first, int rows, LinearSchedule schedule, int extras) {
    std::vector<LinearJobArgs> args;
    for (auto& job : jobs_) {
      fill(*job, job->got, rows, extras == 2 ? job->add.data : nullptr);
      LinearJobArgs arg{on_card(job->weight), Matrix(job->got.data, rows, job->shape.out, job->stride)};
      if (extras >= 1) arg.bias = job->bias.data;
      if (extras == 2) arg.add = job->got.data;  // in place
      args.push_back(arg);
    }
    cuda::linear(*bench_.recorder, LinearInput::plain(x(first, rows)), args, schedule);
    bench_.finish();
    DeviceArray<unsigned> count(std::vector<unsigned>{0});
    for (auto& job : jobs_) {
      const std::size_t size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(job->stride);
      compare<<<blocks_of(size), 256>>>(job->got.data,
                                        job->want.data + static_cast<std::ptrdiff_t>(first) * job->stride,
                                        extras >= 1 ? job->bias.data : nullptr, extras == 2 ? job->add.data : nullptr,
                                        size, job->shape.out, job->stride, count.data);
    }
    return count.host()[0];
  }

  void check_bits(const std::vector<int>& row_counts) {
    unsigned all = 0;
    int runs = 0;
    std::string where;
    for (const int rows : row_counts) {
      if (rows > rows_) continue;
      std::vector<LinearSchedule> schedules = {LinearSchedule::kPortable, LinearSchedule::kAuto};
      if (rows > 8 && rows <= 96 && bench_.recorder->card().wgmma()) schedules.push_back(LinearSchedule::kMid);
      if (rows > 16 && bench_.recorder->card().wgmma())
        schedules.insert(schedules.end(), {LinearSchedule::kWide, LinearSchedule::kTogether});
      for (const LinearSchedule schedule : schedules)
        for (const int first : {0, (rows_ - rows) / 2, rows_ - rows}) {
          const unsigned wrong = differing(first, rows, schedule, runs % 3);
          if (wrong != 0 && where.empty())
            where = fmt::format(", first: {} rows from {} on, schedule {}, extras {}: {}", rows, first,
                                static_cast<int>(schedule), runs % 3, wrong);
          all += wrong, ++runs;
        }
    }
    report(fmt::format("{}: bits, {} runs, {} differing{}", name_, runs, all, where), all == 0);
  }

  // A fault must show: a code changed, the rows moved by one, the last chunk of inputs gone.
  void check_controls() {
    Job& job = *jobs_[0];
    auto* byte = const_cast<std::uint8_t*>(on_card(job.weight)->data()) + 36;
    std::uint8_t value = 0;
    need(cudaMemcpy(&value, byte, 1, cudaMemcpyDeviceToHost));
    const auto changed = static_cast<std::uint8_t>(value ^ 0x04);
    need(cudaMemcpy(byte, &changed, 1, cudaMemcpyHostToDevice));
    const unsigned code = differing(0, 8, LinearSchedule::kAuto, 0);
    need(cudaMemcpy(byte, &value, 1, cudaMemcpyHostToDevice));
    const unsigned mended = differing(0, 8, LinearSchedule::kAuto, 0);
    std::swap_ranges(x_host_.begin(), x_host_.begin() + in_, x_host_.begin() + in_);
    need(cudaMemcpy(x_.data, x_host_.data(), x_.size * 4, cudaMemcpyHostToDevice));
    const unsigned swapped = differing(0, 8, LinearSchedule::kAuto, 0);
    std::swap_ranges(x_host_.begin(), x_host_.begin() + in_, x_host_.begin() + in_);
    std::vector<float> cut = x_host_;
    for (int k = in_ - 16; k < in_; ++k) cut[static_cast<std::size_t>(k)] = 0;
    need(cudaMemcpy(x_.data, cut.data(), x_.size * 4, cudaMemcpyHostToDevice));
    const unsigned tail = differing(0, 8, LinearSchedule::kAuto, 0);
    need(cudaMemcpy(x_.data, x_host_.data(), x_.size * 4, cudaMemcpyHostToDevice));
    report(fmt::format("{}: controls: code {}, mended {}, rows swapped {}, tail dropped {}", name_, code, mended,
                       swapped, tail),
           code != 0 && mended == 0 && swapped != 0 && tail != 0);
  }

 private:
  static void fill(const Job& job, const DeviceArray<float>& to, int rows, const float* add) {
    const std::size_t size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(job.stride);
    poison<<<blocks_of(size), 256>>>(to.data, size, job.shape.out, job.stride, add);
    need(cudaDeviceSynchronize());
  }

  Bench& bench_;
  std::string name_;
  int rows_, in_;
  std::vector<float> x_host_;
  DeviceArray<float> x_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

// A row times the norm's weight, and the norm's factor, on the host: the sums of device/strip_norm.h.
float gained(const float* x, const float* weight, int width, float eps, float* to) {
  std::vector<float> strips(static_cast<std::size_t>(cuda::round_up(width, 512) / 16), 0.0f);
  for (int k = 0; k < width; ++k) to[k] = x[k] * weight[k];
  for (int s = 0; s * 16 < width; ++s) {
    float of[8];
    for (int g = 0; g < 8; ++g) {
      const int k = s * 16 + g;
      const float low = k < width ? x[k] : 0, high = k + 8 < width ? x[k + 8] : 0;
      of[g] = std::fma(high, high, low * low);
    }
    strips[static_cast<std::size_t>(s)] = ((of[0] + of[1]) + (of[2] + of[3])) + ((of[4] + of[5]) + (of[6] + of[7]));
  }
  float lanes[32] = {};
  for (std::size_t s = 0; s < strips.size(); ++s) lanes[s % 32] += strips[s];
  for (int distance = 16; distance > 0; distance /= 2)
    for (int i = 0; i < distance; ++i) lanes[i] += lanes[i + distance];
  return 1.0f / std::sqrt(lanes[0] / static_cast<float>(width) + eps);
}

// Each prologue gives the bits of its op followed by the plain one; the norm those of its weight, the plain one and its
// factor.
void check_prologues(Bench& bench, int rows, int heads, int dim) {
  const int width = heads * dim, out = 80;
  const std::vector<float> x_host = random_rows(rows, width, 3), weight_host = random_rows(1, width, 5);
  DeviceArray<float> x(x_host), gate(random_rows(rows, width, 4)), weight(weight_host);
  DeviceArray<float> made(x.size), want(static_cast<std::size_t>(rows) * out), got(want.size);
  const std::unique_ptr<Weight> packed = bench.pack(RandomAffine(out, width, 4, 32, DType::kBF16, 9));
  const Matrix in(x.data, rows, width), gates(gate.data, rows, width), through(made.data, rows, width);
  cuda::Recorder& r = *bench.recorder;
  std::vector<float> factors(static_cast<std::size_t>(rows), 1.0f);
  const auto same = [&](const char* name, const LinearInput& fused) {
    cuda::linear(r, LinearInput::plain(through),
                 std::vector<LinearJobArgs>{{on_card(packed), Matrix(want.data, rows, out)}});
    bench.finish();
    need(cudaMemset(got.data, 0xFF, got.size * 4));
    need(cudaDeviceSynchronize());
    cuda::linear(r, fused, std::vector<LinearJobArgs>{{on_card(packed), Matrix(got.data, rows, out)}});
    bench.finish();
    std::vector<float> a = want.host();
    const std::vector<float> b = got.host();
    for (std::size_t i = 0; i < a.size(); ++i) a[i] *= factors[i / out];
    report(fmt::format("prologue {}, {} rows of {} heads of {}", name, rows, heads, dim),
           std::memcmp(a.data(), b.data(), a.size() * 4) == 0 && a[0] == a[0] && a[0] != 0);
  };
  std::vector<float> y(x_host.size());
  for (int row = 0; row < rows; ++row) {
    const auto at = static_cast<std::size_t>(row) * static_cast<std::size_t>(width);
    factors[static_cast<std::size_t>(row)] =
        gained(x_host.data() + at, weight_host.data(), width, 1e-6f, y.data() + at);
  }
  need(cudaMemcpy(made.data, y.data(), y.size() * 4, cudaMemcpyHostToDevice));
  need(cudaDeviceSynchronize());
  same("rms_norm", LinearInput::rms_norm(in, weight.data, 1e-6f));
  std::fill(factors.begin(), factors.end(), 1.0f);
  cuda::silu_mul(r, in, gates, through);
  same("silu_mul", LinearInput::silu_mul(in, gates));
  cuda::sigmoid_mul(r, in, gates, through);
  same("sigmoid_mul", LinearInput::sigmoid_mul(in, gates));
  cuda::gated_norm(r, in, gates, heads, dim, weight.data, 1e-6f, through);
  same("gated_norm", LinearInput::gated_norm(in, gates, heads, dim, weight.data, 1e-6f));
}

// Two layers' linears as chains and one by one (the portable kernels): the same bits of all that is left in memory.
struct ChainShapeOf {
  std::string name;
  int hidden, mixed, mlp;
  std::vector<int> projections;
  int bits, group, down_bits;
};

void check_chain(Bench& bench, const ChainShapeOf& s) {
  std::uint64_t seed = 40;
  const auto pack = [&](int out, int in, int bits) {
    return bench.pack(RandomAffine(out, in, bits, s.group, DType::kBF16, ++seed));
  };
  const auto out = pack(s.hidden, s.mixed, s.bits), gate = pack(s.mlp, s.hidden, s.bits),
             up = pack(s.mlp, s.hidden, s.bits), down = pack(s.hidden, s.mlp, s.down_bits);
  std::vector<std::unique_ptr<Weight>> projections;
  int projected = 0;
  for (const int width : s.projections) projections.push_back(pack(width, s.hidden, s.bits)), projected += width;
  const DeviceArray<float> mixed(random_rows(8, s.mixed, 1)), gain(random_rows(2, s.hidden, 2)),
      bias(random_rows(1, s.mlp, 6));
  const std::vector<float> x_host = random_rows(8, s.hidden, 3);
  DeviceArray<float> x(x_host), gates(std::size_t{16} * s.mlp), results(std::size_t{8} * projected);
  DeviceArray<std::uint8_t> memory(cuda::LinearChains::bytes(std::max({s.hidden, s.mixed, s.mlp})));
  need(cudaMemset(memory.data, 0xFF, memory.size));
  cuda::LinearChains chains;
  chains.use_memory(memory.data, std::max({s.hidden, s.mixed, s.mlp}));
  for (int rows = 1; rows <= 8; ++rows) {
    const auto layers = [&](bool chained) {
      need(cudaMemcpy(x.data, x_host.data(), x.size * 4, cudaMemcpyHostToDevice));
      need(cudaMemset(results.data, 0xFF, results.size * 4));
      need(cudaDeviceSynchronize());
      const auto one = [&](const LinearInput& input, std::span<const LinearJobArgs> jobs) {
        if (!chained)
          cuda::linear(*bench.recorder, input, jobs, LinearSchedule::kPortable);
        else if (!chains.add(*bench.recorder, input, jobs))
          cuda::linear(*bench.recorder, input, jobs);
      };
      const Matrix rows_x(x.data, rows, s.hidden), g(gates.data, rows, s.mlp), u(gates.data + 8 * s.mlp, rows, s.mlp);
      for (int layer = 0; layer < 2; ++layer) {
        one(LinearInput::plain(Matrix(mixed.data, rows, s.mixed)),
            std::vector<LinearJobArgs>{{on_card(out), rows_x, nullptr, x.data}});
        one(LinearInput::rms_norm(rows_x, gain.data, 1e-6f),
            std::vector<LinearJobArgs>{{on_card(gate), g, bias.data}, {on_card(up), u}});
        one(LinearInput::silu_mul(g, u), std::vector<LinearJobArgs>{{on_card(down), rows_x, nullptr, x.data}});
        std::vector<LinearJobArgs> jobs;
        float* to = results.data;
        for (const auto& each : projections) {
          jobs.push_back({on_card(each), Matrix(to, rows, each->out())});
          to += static_cast<std::ptrdiff_t>(8) * each->out();
        }
        one(LinearInput::rms_norm(rows_x, gain.data + s.hidden, 1e-6f), jobs);
      }
      chains.flush(*bench.recorder);
      bench.finish();
      std::vector<float> all = x.host();
      const std::vector<float> more = results.host();
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    const std::vector<float> want = layers(false);
    for (int repeat = 0; repeat < 3; ++repeat) {  // launches, captured, replayed
      const std::vector<float> got = layers(true);
      std::size_t differing = 0;
      for (std::size_t i = 0; i < want.size(); ++i)
        differing += std::bit_cast<std::uint32_t>(want[i]) != std::bit_cast<std::uint32_t>(got[i]);
      report(fmt::format("chain {}, {} rows, run {}: {} differing", s.name, rows, repeat, differing),
             differing == 0 && want[0] == want[0] && want[0] != x_host[0]);
    }
  }
}

void check_embed(Bench& bench, const WeightShape& s) {
  const RandomAffine reader(s.out, s.in, s.bits, s.group, s.scales, 21);
  const std::unique_ptr<Weight> table = bench.pack(reader);
  const std::vector<TokenId> ids = {0, s.out - 1, 17, 17, s.out / 2};
  DeviceArray<float> out(ids.size() * static_cast<std::size_t>(s.in));
  cuda::embed(*bench.recorder, *on_card(table), ids, Matrix(out.data, static_cast<int>(ids.size()), s.in));
  bench.finish();
  const std::vector<float> got = out.host();
  std::vector<float> want(static_cast<std::size_t>(s.in));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    expand_row(reader, ids[i], want.data());
    for (std::size_t k = 0; k < want.size(); ++k) wrong += got[i * want.size() + k] != want[k];
  }
  report(fmt::format("embed {} by {}, {} bits, groups of {}: {} differing", s.out, s.in, s.bits, s.group, wrong),
         wrong == 0);
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
  for (const int bits : {2, 3, 4, 5, 6, 8})
    run(bench, fmt::format("{} bits", bits), {{72, 128 * 3, bits, 64, DType::kBF16}}, 140, {1, 8, 17, 65, 130}, false);
  run(bench, "groups of 32", {{200, 1152 + 32, 4, 32, DType::kF16}}, 140, {1, 8, 33, 64, 130}, true);
  run(bench, "several", {{64, 1024}, {24, 1024}, {200, 1024}}, 200, {1, 2, 16, 64, 65, 128, 200}, false);
  check_embed(bench, {200, 128 * 3, 4, 64, DType::kBF16});
  check_prologues(bench, 3, 5, 32);
  check_prologues(bench, 70, 4, 128);
  check_chain(bench, {"odd", 328, 96, 712, {320, 48, 8}, 4, 32, 4});
  std::printf("%s: %d failures\n", failures == 0 ? "all fine" : "FAILED", failures);
  return failures == 0 ? 0 : 1;
}

void check_shapes(Bench& bench) {
  const std::vector<int> few = {1,  2,  3,  5,  7,  8,  9,  15,  16,  17,  31,  32, 33,
                                48, 49, 63, 64, 65, 96, 97, 100, 127, 128, 129, 200};
  const std::vector<int> quick = {1, 3, 8, 9, 16, 29, 33, 49, 64, 65, 97, 130};
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128})
      for (const DType scales : {DType::kBF16, DType::kF16, DType::kF32}) {
        if (scales == DType::kF32 && bits != 4 && bits != 8) continue;
        run(bench, fmt::format("{} bits, groups of {}, {}", bits, group, info(scales).name),
            {{200, 128 * 9 + (group == 32 ? 32 : 0), bits, group, scales}}, 140, quick, bits == 4 && group == 64);
        check_embed(bench, {200, 128 * 3, bits, group, scales});
      }
  run(bench, "scale too large for bf16 codes",
      {{64, 256, 4, 64, DType::kBF16, 40.0f}, {64, 256, 8, 64, DType::kBF16, 40.0f}}, 70, quick, false);
  run(bench, "unquantised", {{200, 1184, 8, 32, DType::kBF16, 0.02f, true}}, 140, quick, false);
  run(bench, "unquantised, four slices",
      {{5120, 1088, 8, 64, DType::kBF16, 0.02f, true}, {48, 1088, 8, 64, DType::kBF16, 0.02f, true}}, 140, quick,
      false);
  run(bench, "one slice and four", {{16448, 2112}, {1024, 2112}}, 100, quick, false);
  run(bench, "tiny", {{1, 64, 4, 64}, {17, 64, 4, 64}}, 70, quick, true);
  run(bench, "fixture's odd shapes", {{320, 96, 4, 32}, {48, 96, 4, 32}, {8, 96, 8, 32}}, 200, few, true);
  run(bench, "SmolLM2's width",
      {{576, 576, 8, 32, DType::kF16}, {192, 576, 8, 32, DType::kF16}, {192, 576, 4, 32, DType::kF16}}, 200, few,
      false);
  run(bench, "27B gate and up", {{17408, 5120}, {17408, 5120}}, 600,
      {1, 2, 5, 8, 9, 16, 17, 32, 33, 48, 64, 65, 96, 128, 257, 600}, true);
  run(bench, "27B delta", {{10240, 5120}, {6144, 5120}, {48, 5120}, {48, 5120}}, 520, few, false);
  run(bench, "27B attention", {{6144, 5120}, {1024, 5120}, {1024, 5120}, {6144, 5120}}, 300, few, false);
  run(bench, "27B down", {{5120, 17408}}, 520, {1, 2, 8, 9, 16, 17, 31, 33, 63, 64, 65, 96, 200, 512}, true);
  run(bench, "27B out", {{5120, 6144}}, 300, few, false);
  run(bench, "27B head", {{248320, 5120}}, 64, {1, 8, 13, 31, 64}, false);
}

void check_chains(Bench& bench) {
  for (const auto& [rows, heads, dim] : {std::array{1, 48, 128}, {3, 5, 32}, {70, 40, 128}, {2, 68, 256}})
    check_prologues(bench, rows, heads, dim);
  for (const ChainShapeOf& shape :
       {ChainShapeOf{"27B", 5120, 6144, 17408, {10240, 6144, 48, 48}, 4, 64, 4},
        ChainShapeOf{"27B attention", 5120, 6144, 17408, {6144, 1024, 1024, 6144}, 4, 64, 4},
        ChainShapeOf{"27B, down of 8 bits", 5120, 6144, 17408, {10240, 6144, 48, 48}, 4, 64, 8},
        ChainShapeOf{"odd", 328, 96, 712, {320, 48, 8}, 4, 32, 4},
        ChainShapeOf{"small, 8 bits", 576, 576, 1536, {576, 192, 192}, 8, 32, 8}})
    check_chain(bench, shape);
}

int check(bool chains_only) {
  Bench bench(8192, 17408);
  check_chains(bench);
  if (!chains_only) check_shapes(bench);
  std::printf("%s: %d failures\n", failures == 0 ? "all fine" : "FAILED", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace steadfast::bench

// linear_check [smallest|chains]
int main(int argc, char** argv) {
  const std::string_view part = argc > 1 ? argv[1] : "";
  return part == "smallest" ? steadfast::bench::check_smallest() : steadfast::bench::check(part == "chains");
}
