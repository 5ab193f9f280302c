// Rows are quantised here as docs/arithmetic.md says, independently of the kernels.
#include "contract/reference/linear.h"

#include <cmath>

namespace steadfast::contract {
namespace {

bool integers(const WeightForm& form, Arithmetic arithmetic) {
  return (arithmetic == Arithmetic::kCpuInt8 || arithmetic == Arithmetic::kCudaInt8) && !form.dense();
}

// Inputs that share a row's scale.
int row_group(const WeightForm& form, Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kCudaInt8 ? std::min(form.group, 64) : form.group;
}

// Whose zero points are taken out of the codes.
bool centred(const WeightForm& form, Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kCpuInt8 && form.symmetric;
}

}  // namespace

LinearRow linear_row(const float* x, int in, const WeightForm& form, Arithmetic arithmetic, bool fine) {
  LinearRow row;
  row.values.assign(x, x + in);
  if (!integers(form, arithmetic)) {
    if (is_cuda(arithmetic) || arithmetic == Arithmetic::kCpuBF16)
      for (double& value : row.values) value = static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(value))));
    return row;
  }
  const int group = row_group(form, arithmetic);
  const float limit = fine && !is_cuda(arithmetic) ? 127.0f * 256 : 127.0f;
  for (int first = 0; first < in; first += group) {
    float largest = 0;
    for (int k = first; k < first + group; ++k) largest = std::max(largest, std::fabs(x[k]));
    const float inverse = largest > 0x1p-110f ? limit / largest : 0.0f;
    row.scales.push_back(static_cast<double>(largest / limit));
    for (int k = first; k < first + group; ++k)
      row.values[static_cast<std::size_t>(k)] = static_cast<double>(std::nearbyint(x[k] * inverse));
  }
  return row;
}

LinearFeature linear_feature(const RandomWeight& weight, int feature, Arithmetic arithmetic) {
  const WeightForm& form = weight.form();
  if (!integers(form, arithmetic)) return {expanded(weight, feature, arithmetic), {}, {}};
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(weight.in()));
  std::vector<float> scales(static_cast<std::size_t>(weight.groups())), biases(scales.size());
  weight.read(feature, codes.data(), scales.data(), biases.data());
  const double zero = centred(form, arithmetic) ? 1 << (form.bits - 1) : 0;
  LinearFeature result;
  for (const std::uint8_t code : codes) result.weights.push_back(code - zero);
  result.scales.assign(scales.begin(), scales.end());
  result.biases.assign(biases.begin(), biases.end());
  if (centred(form, arithmetic)) result.biases.assign(biases.size(), 0);
  return result;
}

Exact linear_value(const LinearRow& row, const LinearFeature& feature, const WeightForm& form, Arithmetic arithmetic,
                   int steps, double bias, double add) {
  double sum = 0, size = 0, unit = 0;
  const std::size_t in = row.values.size();
  if (integers(form, arithmetic)) {
    const auto group = static_cast<std::size_t>(row_group(form, arithmetic));
    for (std::size_t g = 0; g < row.scales.size(); ++g) {
      const std::size_t w = g * group / static_cast<std::size_t>(form.group);
      double dot = 0, codes = 0;
      for (std::size_t k = g * group; k < (g + 1) * group; ++k)
        dot += feature.weights[k] * row.values[k], codes += row.values[k];
      const double first = dot * row.scales[g] * feature.scales[w], second = codes * row.scales[g] * feature.biases[w];
      sum += first + second;
      size += std::fabs(first) + std::fabs(second);
    }
    unit = gamma_n(2.0 * static_cast<double>(row.scales.size()) + 3);
  } else {
    for (std::size_t k = 0; k < in; ++k) {
      const double term = feature.weights[k] * row.values[k];
      sum += term;
      size += std::fabs(term);
    }
    unit = is_cuda(arithmetic) ? steps * 0x1p-22 : gamma_n(static_cast<double>(in) + 2);
  }
  const double total = sum + bias + add, added = std::fabs(bias) + std::fabs(add);
  const double epilogue = added > 0 ? gamma_n(2) * (std::fabs(sum) + added + unit * size) : 0;
  return {total, unit * size + epilogue + 1e-37};
}

}  // namespace steadfast::contract
