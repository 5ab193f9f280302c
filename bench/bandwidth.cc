// Memory bandwidth as a reply sees it: threads read a buffer far larger than the caches, front to back, each its own
// part. Usage: bandwidth [THREADS] [MIB] [RUNS]; prints the median in GB/s (1e9 bytes). Stands alone; compare_llama.py
// builds it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

// The sum keeps the reads alive; 64 chains let them overlap.
std::uint64_t read_all(const std::uint64_t* words, std::size_t count) {
  std::uint64_t sums[64] = {};
  for (std::size_t i = 0; i + 64 <= count; i += 64) {
    for (std::size_t j = 0; j < 64; ++j) sums[j] += words[i + j];
  }
  std::uint64_t sum = 0;
  for (std::uint64_t part : sums) sum += part;
  return sum;
}

double seconds_to_read(const std::vector<std::uint64_t>& words, std::size_t threads, std::uint64_t& sum) {
  std::vector<std::uint64_t> sums(threads);
  std::vector<std::thread> pool;
  const std::size_t part = words.size() / threads;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] { sums[t] = read_all(words.data() + t * part, part); });
  }
  for (std::thread& thread : pool) thread.join();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  for (std::uint64_t part_sum : sums) sum += part_sum;
  return time.count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t threads = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2;
  const std::size_t mib = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 512;
  const std::size_t runs = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 9;
  if (threads == 0 || mib == 0 || runs == 0) {
    std::fprintf(stderr, "usage: bandwidth [THREADS] [MIB] [RUNS], each at least 1\n");
    return 2;
  }
  const std::vector<std::uint64_t> words(mib << 17, 1);
  std::uint64_t sum = 0;
  std::vector<double> seconds;
  for (std::size_t run = 0; run < runs; ++run) seconds.push_back(seconds_to_read(words, threads, sum));
  std::sort(seconds.begin(), seconds.end());
  const double bytes = static_cast<double>(words.size() / threads * threads * sizeof(std::uint64_t));
  std::printf("%.2f\n", bytes / seconds[runs / 2] / 1e9);
  return sum == 0 ? 1 : 0;
}
