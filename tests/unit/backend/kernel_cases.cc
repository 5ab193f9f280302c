// Weights, rows and calls for the kernel tests.
#include "kernel_cases.h"

#include <algorithm>
#include <cstring>
#include <iostream>

namespace steadfast::test {

const std::vector<const cpu::Kernels*>& machine_kernels() {
  static const std::vector<const cpu::Kernels*> tables = [] {
    std::vector<const cpu::Kernels*> found;
    for (const char* name : {"scalar", "avx2", "avx512"}) {
      if (const cpu::Kernels* table = cpu::select_kernels(name))
        found.push_back(table);
      else
        std::cout << "This machine has no " << name << ": its kernels are not compared here.\n";
    }
    return found;
  }();
  return tables;
}

std::vector<float> normal_floats(Dice& dice, std::size_t count, float spread) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(count);
  for (float& value : values) value = normal(dice);
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

namespace {

float exact_in(DType dtype, float value) {
  if (dtype == DType::kF16) return f16_to_f32(f32_to_f16(value));
  return dtype == DType::kBF16 ? bf16_to_f32(f32_to_bf16(value)) : value;
}

}  // namespace

MemoryAffine::MemoryAffine(Dice& dice, int out, int in, int bits, int group, DType scale_dtype, bool symmetric) {
  out_ = out;
  in_ = in;
  bits_ = bits;
  group_ = group;
  scale_dtype_ = scale_dtype;
  const std::size_t rows = static_cast<std::size_t>(out), sides = rows * static_cast<std::size_t>(groups());
  codes_.resize(rows * static_cast<std::size_t>(in));
  for (auto& code : codes_) code = static_cast<std::uint8_t>(dice() & ((1u << bits) - 1));
  scales_ = normal_floats(dice, sides, 0.02f);
  biases_ = normal_floats(dice, sides, 0.3f);
  for (std::size_t i = 0; i < sides; ++i) {
    scales_[i] = exact_in(scale_dtype, scales_[i]);
    biases_[i] = symmetric ? -static_cast<float>(1 << (bits - 1)) * scales_[i] : exact_in(scale_dtype, biases_[i]);
  }
}

void MemoryAffine::read(int row, std::uint8_t* codes, float* scales, float* biases) const {
  std::copy_n(&codes_[index(row, 0, in_)], in_, codes);
  std::copy_n(&scales_[index(row, 0, groups())], groups(), scales);
  std::copy_n(&biases_[index(row, 0, groups())], groups(), biases);
}

std::string AffineCase::name() const {
  return fmt::format("{} bits, groups of {}, {}{}", bits, group, info(scale_dtype).name,
                     symmetric ? ", symmetric" : "");
}

std::vector<AffineCase> affine_cases() {
  std::vector<AffineCase> cases;
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128})
      for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32})
        for (const bool symmetric : {false, true}) cases.push_back({bits, group, dtype, symmetric});
  return cases;
}

std::unique_ptr<Weight> pack(const AffineReader& reader, std::span<const int> row_map) {
  cpu::ThreadTeam team(2);
  auto weight = cpu::PackedWeight::from(reader, row_map, team);
  CHECK(weight.is_ok(), "{}", weight.message());
  return std::move(*weight);
}

const cpu::PackedWeight& packed(const Weight& weight) { return static_cast<const cpu::PackedWeight&>(weight); }

InputRows::InputRows(const cpu::Kernels& kernels, const std::vector<float>& x, int rows, int in, int group, Mode mode)
    : plain(x) {
  if (mode == Mode::kF32) return;
  if (mode == Mode::kBF16) {
    kernels.round_bf16(x.data(), rows * in, plain.data());
    return;
  }
  const std::size_t groups = static_cast<std::size_t>(in / group);
  codes.resize(x.size());
  if (mode == Mode::kFine) low.resize(x.size());
  scales.resize(static_cast<std::size_t>(rows) * groups);
  sums.resize(scales.size());
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    const std::size_t at = row * static_cast<std::size_t>(in);
    kernels.quantise(x.data() + at, in, group, codes.data() + at, low.empty() ? nullptr : low.data() + at,
                     scales.data() + row * groups, sums.data() + row * groups);
  }
}

void multiply(const cpu::Kernels& kernels, const cpu::AffineWeight& weight, const InputRows& x, Mode mode,
              const Extent& extent, std::vector<float>& y) {
  const cpu::LinearOutput out{y.data(), weight.out + kSlack, extent.bias, extent.add};
  if (mode == Mode::kInt8 || mode == Mode::kFine) {
    kernels.linear_int8(weight, x.view(), out, extent.first_tile, extent.last_tile, extent.first_row, extent.last_row);
  } else {
    kernels.linear_f32(weight, x.plain.data(), mode == Mode::kBF16, out, extent.first_tile, extent.last_tile,
                       extent.first_row, extent.last_row);
  }
}

}  // namespace steadfast::test
