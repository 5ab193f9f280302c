// What the kernel tests share: the machine's kernel tables, weights in memory with every shape of packing, random rows.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/packed.h"
#include "backend/cpu/thread_team.h"

namespace steadfast::test {

// The tables that this machine can run, scalar first; what it lacks is said once on standard output.
const std::vector<const cpu::Kernels*>& machine_kernels();

// Unit roundoff of float32, and Higham's gamma_n = n u / (1 - n u): the relative error of n roundings.
constexpr double kRoundoff = 0x1p-24;
constexpr double gamma_n(double n) { return n * kRoundoff / (1 - n * kRoundoff); }

using Dice = std::mt19937;
std::vector<float> normal_floats(Dice& dice, std::size_t count, float spread = 1);
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

// Codes, scales and biases in memory. Scales of both signs, exact in their type.
class MemoryAffine : public AffineReader {
 public:
  MemoryAffine(Dice& dice, int out, int in, int bits, int group, DType scale_dtype, bool symmetric);
  void read(int row, std::uint8_t* codes, float* scales, float* biases) const override;
  void release() const override {}

  std::uint8_t& code(int row, int k) { return codes_[index(row, k, in_)]; }
  float& scale(int row, int g) { return scales_[index(row, g, groups())]; }
  float& bias(int row, int g) { return biases_[index(row, g, groups())]; }
  std::uint8_t code(int row, int k) const { return codes_[index(row, k, in_)]; }
  float scale(int row, int g) const { return scales_[index(row, g, groups())]; }
  float bias(int row, int g) const { return biases_[index(row, g, groups())]; }

 private:
  static std::size_t index(int row, int column, int width) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(width) + static_cast<std::size_t>(column);
  }
  std::vector<std::uint8_t> codes_;
  std::vector<float> scales_, biases_;
};

struct AffineCase {
  int bits, group;
  DType scale_dtype;
  bool symmetric;
  std::string name() const;
};
// Every bit width, group, scale type, symmetric or not.
std::vector<AffineCase> affine_cases();

// Which kernel multiplies.
enum class Mode { kInt8, kFine, kF32, kBF16 };
constexpr Mode kModes[] = {Mode::kInt8, Mode::kFine, Mode::kF32, Mode::kBF16};

std::unique_ptr<Weight> pack(const AffineReader& reader, std::span<const int> row_map = {});
const cpu::PackedWeight& packed(const Weight& weight);

// Rows as a linear kernel reads them: quantised under the integer modes, rounded under bf16.
struct InputRows {
  InputRows(const cpu::Kernels& kernels, const std::vector<float>& x, int rows, int in, int group, Mode mode);
  std::vector<float> plain;
  std::vector<std::int8_t> codes, low;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;
  cpu::QuantRows view() const { return {codes.data(), low.empty() ? nullptr : low.data(), scales.data(), sums.data()}; }
};

// What part of the product a call makes, and its epilogue.
struct Extent {
  int first_row = 0, last_row = 0, first_tile = 0, last_tile = 0;
  const float* bias = nullptr;
  const float* add = nullptr;  // stride as y's
};

constexpr float kUntouched = 12345.5f;
constexpr int kSlack = 5;  // floats between rows of y, which no kernel may write

// y as [rows][out + kSlack], kUntouched where nothing was written.
void multiply(const cpu::Kernels& kernels, const cpu::AffineWeight& weight, const InputRows& x, Mode mode,
              const Extent& extent, std::vector<float>& y);

}  // namespace steadfast::test
