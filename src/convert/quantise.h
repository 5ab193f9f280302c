// MLX's affine quantiser, and rows of codes as MLX packs them. Source: model-spec 3.2 and 3.3 (mlx
// backend/cpu/quantized). Arithmetic: float32, each operation rounded by itself; scale and bias are rounded to the
// weight's type at the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace steadfast {

bool is_affine_bits(std::int64_t bits);    // 2, 3, 4, 5, 6, 8
bool is_affine_group(std::int64_t group);  // 32, 64, 128

// `width` finite values, a multiple of `group`, to `width` codes and width / group scales and biases (before rounding
// to the weight's type: put_floats does that).
void quantise_row(const float* values, int width, int bits, int group, std::uint8_t* codes, float* scales,
                  float* biases);

// A little-endian stream of codes of `bits` each: width * bits / 8 bytes. width is a multiple of 8.
void pack_codes(const std::uint8_t* codes, int width, int bits, std::byte* out);

// float32 to F32, F16 or BF16, rounded to nearest even; returns the first byte behind them.
std::byte* put_floats(DType dtype, const float* values, std::size_t count, std::byte* out);

}  // namespace steadfast
