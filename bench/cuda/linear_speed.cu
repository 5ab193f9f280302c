// linear_speed [few [ROWS [NAME]]|prompt|int8]: times of linears on this card, as the recorder replays them: rows to
// bf16, then the product. few: 1 to 96 rows of the 27B's layers, with the share of copy bandwidth, and a round of all
// its linears. prompt: 128 to 8,192 rows, as lines that linear_peer.py reads beside PyTorch's. int8: rows quantised,
// bf16 beside it.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "backend/cuda/linear_chain.h"
#include "backend/cuda/linear_int8.h"
#include "linear_bench.h"

namespace steadfast::bench {
namespace {

using cuda::LinearInput;
using cuda::LinearJobArgs;
using cuda::LinearSchedule;

constexpr double kCopyBytes = 4.19e12;  // a second, measured on an H200

struct Timed {
  std::vector<std::vector<std::unique_ptr<Weight>>> copies;  // [copy][job]
  double bytes = 0;                                          // of one copy
};

// As many copies as keep the weights from staying in L2.
Timed load(Bench& bench, const std::vector<WeightShape>& shapes, double least_bytes) {
  Timed timed;
  for (double all = 0; all < least_bytes || timed.copies.size() < 2;) {
    std::vector<std::unique_ptr<Weight>> jobs;
    timed.bytes = 0;
    for (const WeightShape& s : shapes) {
      jobs.push_back(bench.pack(RandomAffine(s.out, s.in, s.bits, s.group, s.scales, timed.copies.size())));
      timed.bytes += static_cast<double>(s.out) * s.in * s.bits / 8 + static_cast<double>(s.out) * s.in / s.group * 4;
    }
    all += timed.bytes;
    timed.copies.push_back(std::move(jobs));
  }
  return timed;
}

double median(std::vector<float> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Median microseconds of what `append` appends, over replays of its graph.
template <typename Append>
double replayed(Bench& bench, int repeats, Append&& append) {
  cudaEvent_t begin, end;
  need(cudaEventCreate(&begin));
  need(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < repeats + 3; ++i) {
    append();
    need(cudaEventRecord(begin, bench.recorder->stream()));
    need(bench.recorder->run());
    need(cudaEventRecord(end, bench.recorder->stream()));
    need(bench.recorder->wait());
    float ms = 0;
    need(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 3) times.push_back(ms * 1e3f);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return median(times);
}

void append_linear(Bench& bench, const Timed& timed, std::size_t copy, const Matrix& x, float* out,
                   LinearSchedule schedule = LinearSchedule::kAuto) {
  std::vector<LinearJobArgs> args;
  for (const auto& weight : timed.copies[copy % timed.copies.size()]) {
    args.push_back({on_card(weight), Matrix(out, x.rows, weight->out())});
    out += static_cast<std::ptrdiff_t>(x.rows) * weight->out();
  }
  cuda::linear(*bench.recorder, LinearInput::plain(x), args, schedule);
}

int total_out(const std::vector<WeightShape>& shapes) {
  int sum = 0;
  for (const WeightShape& s : shapes) sum += s.out;
  return sum;
}

const std::vector<std::pair<std::string, std::vector<WeightShape>>> kLinears = {
    {"gate_up", {{17408, 5120}, {17408, 5120}}},
    {"delta", {{10240, 5120}, {6144, 5120}, {48, 5120}, {48, 5120}}},
    {"attention", {{6144, 5120}, {1024, 5120}, {1024, 5120}, {6144, 5120}}},
    {"down", {{5120, 17408}}},
    {"out", {{5120, 6144}}},
    {"head", {{248320, 5120}}},
};

// The linears of 64 layers as the backend chains them: out, gate and up, down and the next layer's first in a launch.
void append_chains(Bench& bench, const std::vector<Timed>& loaded, int rows, float* x, float* out) {
  static const DeviceArray<float> gain(random_rows(1, 17408, 2));
  static DeviceArray<std::uint8_t> memory(cuda::LinearChains::bytes(17408));
  static DeviceArray<float> residual(random_rows(cuda::kChainRows, 5120, 3));
  cuda::LinearChains chains;
  chains.use_memory(memory.data, 17408);
  std::size_t n = 0;
  const Matrix hidden(residual.data, rows, 5120);
  const auto add = [&](const LinearInput& input, std::size_t which, bool into_hidden) {
    std::vector<LinearJobArgs> jobs;
    float* to = out;
    for (const auto& weight : loaded[which].copies[n % loaded[which].copies.size()]) {
      jobs.push_back({on_card(weight), Matrix(to, rows, weight->out())});
      if (into_hidden) jobs.back() = {on_card(weight), hidden, nullptr, hidden.data};
      to += static_cast<std::ptrdiff_t>(rows) * weight->out();
    }
    chains.add(*bench.recorder, input, jobs);
  };
  for (int layer = 0; layer < 64; ++layer, ++n) {
    chains.flush(*bench.recorder);
    add(LinearInput::plain(Matrix(x, rows, 6144)), 4, true);
    add(LinearInput::rms_norm(hidden, gain.data, 1e-6f), 0, false);
    const Matrix gate(out, rows, 17408), up(out + static_cast<std::ptrdiff_t>(rows) * 17408, rows, 17408);
    add(LinearInput::silu_mul(gate, up), 3, true);
    add(LinearInput::rms_norm(hidden, gain.data, 1e-6f), layer % 4 == 3 ? 2 : 1, false);
  }
  chains.flush(*bench.recorder);
}

// only_rows 0: all; only_name empty: all, and whole rounds.
void few(int only_rows, const std::string& only_name) {
  Bench bench(96, 17408);
  const auto started = std::chrono::steady_clock::now();
  std::vector<Timed> loaded;
  double bytes = 0;
  for (const auto& [name, shapes] : kLinears) {
    const bool used = only_name.empty() || name == only_name;
    loaded.push_back(used ? load(bench, shapes, 300e6) : Timed{});
    bytes += loaded.back().bytes * static_cast<double>(loaded.back().copies.size());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  std::printf("packed and uploaded %.1f GB in %.2f s (random numbers made on the way): 15 GB in %.1f s\n", bytes * 1e-9,
              seconds, seconds * 15e9 / bytes);
  DeviceArray<float> x(random_rows(96, 17408, 1)), out(std::size_t{96} * 248320);
  for (const int rows : {1, 2, 8, 16, 24, 32, 48, 64, 96}) {
    if (only_rows > 0 && rows != only_rows) continue;
    std::printf("%2d rows:", rows);
    for (std::size_t i = 0; i < kLinears.size(); ++i) {
      const auto& [name, shapes] = kLinears[i];
      if (loaded[i].copies.empty()) continue;
      const int chain = name == "head" ? 6 : 40;
      const Matrix in(x.data, rows, shapes[0].in);
      const double us = replayed(bench, 9,
                                 [&] {
                                   for (int n = 0; n < chain; ++n)
                                     append_linear(bench, loaded[i], static_cast<std::size_t>(n), in, out.data);
                                 }) /
                        chain;
      std::printf("  %s %.2f us %.0f%%", name.c_str(), us, loaded[i].bytes / kCopyBytes * 1e8 / us);
    }
    if (!only_name.empty()) {
      std::printf("\n");
      continue;
    }
    double floor = 0;
    const double round = replayed(bench, 7, [&] {
      std::size_t n = 0;
      floor = 0;
      for (int layer = 0; layer < 64; ++layer)
        for (const std::size_t i : {layer % 4 == 3 ? 2u : 1u, 4u, 0u, 3u}) {
          append_linear(bench, loaded[i], n++, Matrix(x.data, rows, kLinears[i].second[0].in), out.data);
          floor += loaded[i].bytes;
        }
    });
    std::printf("  64 layers %.0f us, floor %.0f: %.0f%%", round, floor / kCopyBytes * 1e6,
                floor / kCopyBytes * 1e8 / round);
    if (rows <= cuda::kChainRows) {
      const double chained = replayed(bench, 7, [&] { append_chains(bench, loaded, rows, x.data, out.data); });
      std::printf("; chained %.0f us: %.0f%%", chained, floor / kCopyBytes * 1e8 / chained);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

void prompt() {
  Bench bench(8192, 17408);
  DeviceArray<float> x(random_rows(8192, 17408, 1)), out(std::size_t{8192} * 34816);
  for (const auto& [name, shapes] : kLinears) {
    if (name == "head") continue;
    const Timed timed = load(bench, shapes, 150e6);
    for (const int rows : {65, 128, 256, 512, 1024, 2048, 8192}) {
      const double flops = 2.0 * rows * shapes[0].in * total_out(shapes);
      const int chain = std::clamp(static_cast<int>(6e-3 * 600e12 / flops), 1, 40);
      const Matrix in(x.data, rows, shapes[0].in);
      const auto time = [&](LinearSchedule schedule) {
        return replayed(bench, 5,
                        [&] {
                          for (int n = 0; n < chain; ++n)
                            append_linear(bench, timed, static_cast<std::size_t>(n), in, out.data, schedule);
                        }) /
               chain;
      };
      const double us = time(LinearSchedule::kAuto);
      std::printf("time %s %d %d %d %.2f us %.1f TFLOP/s; by slices %.2f, together %.2f\n", name.c_str(),
                  total_out(shapes), shapes[0].in, rows, us, flops / us * 1e-6, time(LinearSchedule::kWide),
                  time(LinearSchedule::kTogether));
      std::fflush(stdout);
    }
  }
}

void append_int8(Bench& bench, const Timed& timed, std::size_t copy, const Matrix& x, float* out,
                 cuda::Int8Schedule schedule) {
  std::vector<LinearJobArgs> args;
  for (const auto& weight : timed.copies[copy % timed.copies.size()]) {
    args.push_back({on_card(weight), Matrix(out, x.rows, weight->out())});
    out += static_cast<std::ptrdiff_t>(x.rows) * weight->out();
  }
  cuda::linear_int8(*bench.recorder, LinearInput::plain(x), args, schedule);
}

void int8() {
  Bench bench(8192, 17408);
  DeviceArray<float> x(random_rows(8192, 17408, 1)), out(std::size_t{8192} * 34816);
  for (const auto& [name, shapes] : kLinears) {
    if (name == "head") continue;
    const Timed timed = load(bench, shapes, 150e6);
    for (const int rows : {1, 16, 32, 64, 128, 256, 1024, 8192}) {
      const double flops = 2.0 * rows * shapes[0].in * total_out(shapes);
      const int chain = std::clamp(static_cast<int>(6e-3 * 400e12 / flops), 1, 20);
      const Matrix in(x.data, rows, shapes[0].in);
      const auto time = [&](auto&& append) {
        return replayed(bench, 5,
                        [&] {
                          for (int n = 0; n < chain; ++n) append(static_cast<std::size_t>(n));
                        }) /
               chain;
      };
      const auto quantised = [&](cuda::Int8Schedule schedule) {
        return time([&, schedule](std::size_t n) { append_int8(bench, timed, n, in, out.data, schedule); });
      };
      const double us = quantised(cuda::Int8Schedule::kAuto);
      const double bf16 = time([&](std::size_t n) { append_linear(bench, timed, n, in, out.data); });
      std::printf(
          "int8 %s %d %d %d: %.2f us %.1f TOP/s; many rows %.2f, few %.2f, and features %.2f; bf16 %.2f: %.2f of it\n",
          name.c_str(), total_out(shapes), shapes[0].in, rows, us, flops / us * 1e-6,
          quantised(cuda::Int8Schedule::kMany), quantised(cuda::Int8Schedule::kFew),
          quantised(cuda::Int8Schedule::kLeast), bf16, us / bf16);
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace steadfast::bench

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "few") == 0)
    steadfast::bench::few(argc > 2 ? std::atoi(argv[2]) : 0, argc > 3 ? argv[3] : "");
  if (argc < 2 || std::strcmp(argv[1], "prompt") == 0) steadfast::bench::prompt();
  if (argc >= 2 && std::strcmp(argv[1], "int8") == 0) steadfast::bench::int8();
  return 0;
}
