// attention_speed: times of attention on the card, 24 heads over 4 of 256 dims: reply rows of 1 and 8 streams, prompts,
// whole and paged in random order, bf16 and fp8, beside the floor (bytes at 4.19 TB/s, or operations at 990 TFLOP/s).
// Caches rotate over at least 400 MB, launches are replayed from a graph, the median of several replays counts.
#include <cstring>
#include <string>

#include "attention_problem.h"

namespace steadfast::cuda::check {
namespace {

constexpr double kBytesPerSecond = 4.19e12, kOperationsPerSecond = 990e12;

// Random numbers all over: bf16 within -1.5 to 1.5, e4m3 of every finite pattern.
void fill(Memory& memory, bool fp8, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint16_t> block(std::size_t{4} << 20);
  for (auto& x : block) {
    const auto bits = random();
    x = fp8 ? static_cast<std::uint16_t>(bits & 0xF7F7)
            : f32_to_bf16(3.0f * static_cast<float>(bits >> 8) / 16777216.0f - 1.5f);
  }
  for (std::size_t at = 0; at < memory.bytes(); at += block.size() * 2)
    need(cudaMemcpy(memory.data() + at, block.data(), std::min(block.size() * 2, memory.bytes() - at),
                    cudaMemcpyDefault),
         "fill");
}
void fill_scales(Memory& memory) {
  const std::vector<float> scales(memory.bytes() / sizeof(float), 1.0f / 256);
  need(cudaMemcpy(memory.data(), scales.data(), memory.bytes(), cudaMemcpyDefault), "fill");
}

struct Result {
  double microseconds;
};

Result time(const Shape& shape, int streams, int rows, int context, int page, int rounds) {
  const std::size_t bytes =
      2 * shape.row_bytes() * static_cast<std::size_t>(context) * static_cast<std::size_t>(streams);
  const int caches = rows > 64 ? 1 : static_cast<int>(std::max<std::size_t>(1, (std::size_t{400} << 20) / bytes + 1));
  const int calls = rows > 64 ? 1 : std::max(caches, 12);
  Bench bench(std::size_t{16} << 20, std::size_t{400} << 20, true);
  Cache cache(shape, streams * caches, context, page, 4);
  for (const bool keys : {true, false}) {
    fill(cache.part(keys), shape.fp8, keys ? 1 : 2);
    fill_scales(cache.scales(keys));
  }
  Memory queries(static_cast<std::size_t>(streams * rows) * shape.query_width() * 2);
  Memory out(static_cast<std::size_t>(streams * rows) * shape.query_width() * 4);
  fill(queries, false, 3);
  cudaEvent_t start, stop;
  need(cudaEventCreate(&start), "event");
  need(cudaEventCreate(&stop), "event");
  std::vector<double> times;
  for (int round = 0; round < rounds + 3; ++round) {
    for (int call = 0; call < calls; ++call) {
      std::vector<Piece> pieces;
      std::vector<CacheView> views;
      for (int stream = 0; stream < streams; ++stream) {
        pieces.push_back({nullptr, stream * rows, rows, context - rows});
        views.push_back(cache.view(call % caches * streams + stream));
      }
      AttentionArgs args;
      args.queries = reinterpret_cast<const std::uint16_t*>(queries.data());
      args.shape = shape.attention();
      args.pieces = pieces;
      args.views = views;
      args.out = Matrix(reinterpret_cast<float*>(out.data()), streams * rows, shape.query_width());
      attention(bench.recorder(), args);
    }
    need(cudaEventRecord(start, bench.recorder().stream()), "event");
    need(bench.recorder().run());
    need(cudaEventRecord(stop, bench.recorder().stream()), "event");
    need(bench.recorder().wait());
    float milliseconds = 0;
    need(cudaEventElapsedTime(&milliseconds, start, stop), "event");
    if (round >= 3) times.push_back(milliseconds * 1e3 / calls);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2]};
}

void replies(int streams, int context) {
  for (const bool fp8 : {false, true}) {
    const Shape shape{24, 4, 256, fp8};
    const double bytes = 2.0 * static_cast<double>(shape.row_bytes()) * context * streams,
                 floor = bytes / kBytesPerSecond * 1e6;
    double whole = 0;
    for (const int page : {0, 256}) {
      const double us = time(shape, streams, 1, context, page, 9).microseconds;
      if (page == 0) whole = us;
      std::printf(
          "reply rows, %d streams, %6d keys, %s, %s: %8.1f us %6.0f GB/s, floor %7.1f us, %3.0f%%; paged/whole %.3f\n",
          streams, context, fp8 ? "fp8 " : "bf16", page == 0 ? "whole" : "paged", us, bytes / us * 1e-3, floor,
          100 * floor / us, whole / us);
      std::fflush(stdout);
    }
  }
}

void prompt(int rows, int context) {
  for (const bool fp8 : {false, true}) {
    const Shape shape{24, 4, 256, fp8};
    double pairs = 0;
    for (int row = 0; row < rows; ++row) pairs += context - rows + row + 1;
    const double operations = 4.0 * pairs * shape.query_width(), floor = operations / kOperationsPerSecond * 1e6;
    for (const int page : {0, 256}) {
      const double us = time(shape, 1, rows, context, page, 7).microseconds;
      std::printf("prompt, %5d rows at %6d, %s, %s: %8.1f us %6.1f TFLOP/s, floor %7.1f us, %3.0f%%\n", rows, context,
                  fp8 ? "fp8 " : "bf16", page == 0 ? "whole" : "paged", us, operations / us * 1e-6, floor,
                  100 * floor / us);
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace steadfast::cuda::check

int main() {
  using namespace steadfast::cuda::check;
  for (const int context : {1024, 4096, 32768, 131072})
    for (const int streams : {1, 8}) replies(streams, context);
  prompt(8192, 8192);
  for (const int rows : {2048, 1024, 256}) prompt(rows, 32768);
  for (const int rows : {16, 64}) prompt(rows, 8192);
}
