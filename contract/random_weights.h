// Weights of random numbers in every form that a checkpoint has, and what an arithmetic makes of them, in double.
#pragma once

#include <memory>

#include "contract/kernel.h"

namespace steadfast::contract {

// "OUT:BITS/GROUP/SCALES[/sym]" (as 200:4/64/bf16) or "OUT:dense/TYPE"; SCALES and TYPE: bf16, f16 or f32. sym: every
// bias is -2^(bits - 1) scale.
struct WeightForm {
  int out = 0, bits = 0, group = 0;  // bits 0: dense
  DType type = DType::kBF16;         // of the scales, or of dense weights
  bool symmetric = false;
  float largest = 0.02f;  // about twice the largest weight
  bool dense() const { return bits == 0; }
};
// in: inputs, which the groups must divide.
Result<std::vector<WeightForm>> parse_weights(const std::string& text, int in);

// One weight: its numbers follow from the seed.
class RandomWeight : public AffineReader {
 public:
  RandomWeight(const WeightForm& form, int in, std::uint64_t seed);
  void read(int row, std::uint8_t* codes, float* scales, float* biases) const override;
  void release() const override {}
  std::unique_ptr<Weight> pack(Backend& backend) const;

  const WeightForm& form() const { return form_; }
  std::vector<float> dense_row(int row) const;  // as stored
  // One code's highest bit flipped (dense: the sign), from now on: a control.
  void plant(int row, int k) { planted_row_ = row, planted_k_ = k; }

 private:
  float stored(float x) const;
  WeightForm form_;
  std::uint64_t seed_;
  int planted_row_ = -1, planted_k_ = 0;
};

// What the CPU's and CUDA's packing makes of row `row`: the weights that are multiplied.
std::vector<double> expanded(const RandomWeight& weight, int row, Arithmetic arithmetic);

// One rounding to bf16, to nearest even.
double round_bf16(double x);

// A weight's smallest number of bytes in the memory of a device.
double stored_bytes(const WeightForm& form, int in);

}  // namespace steadfast::contract
