// Expansion of one row; what every decoder of affine groups shares.
#include "quant/affine.h"

#include <cmath>
#include <vector>

namespace steadfast {

void expand_row(const AffineReader& reader, int row, float* out) {
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(reader.in()));
  std::vector<float> scales(static_cast<std::size_t>(reader.groups())), biases(scales.size());
  reader.read(row, codes.data(), scales.data(), biases.data());
  for (int i = 0; i < reader.in(); ++i) {
    const auto g = static_cast<std::size_t>(i / reader.group());
    out[i] = std::fma(static_cast<float>(codes[static_cast<std::size_t>(i)]), scales[g], biases[g]);
  }
}

}  // namespace steadfast
