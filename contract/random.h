// Random numbers of the contract's problems: everything follows from seeds, on every machine alike.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace steadfast::contract {

constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

// Uniform in [-1, 1).
constexpr float uniform(std::uint64_t x) { return static_cast<float>(mix(x) >> 40) * 0x1p-23f - 1.0f; }

// Rows with outliers, as activations have them: mostly within 2, one in 64 within 18.
inline std::vector<float> random_rows(int rows, int width, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(rows) * static_cast<std::size_t>(width));
  seed = mix(seed + 1) * 2;
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = (uniform(seed + 2 * i) + uniform(seed + 2 * i + 1)) * (mix(seed + i) % 64 == 0 ? 9.0f : 1.0f);
  return x;
}

// Uniform within `scale`.
inline std::vector<float> random_floats(std::size_t count, float scale, std::uint64_t seed) {
  std::vector<float> x(count);
  seed = mix(seed + 7);
  for (std::size_t i = 0; i < count; ++i) x[i] = scale * uniform(seed + i);
  return x;
}

// A sequence of whole numbers.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(mix(seed + 3)) {}
  int below(int end) {
    return static_cast<int>(mix(state_ += 0x9E3779B97F4A7C15ull) % static_cast<std::uint64_t>(end));
  }

 private:
  std::uint64_t state_;
};

}  // namespace steadfast::contract
