// Quantised matrices as affine groups: w = scale * code + bias for `group` consecutive inputs of one output feature.
// One decoder a weight format turns its bytes into this form; the backends pack it and need no other (model-spec 3, 4).
// Q4_0: bias = -8 scale. Q4_1: bias = m. Q8_0: code = q + 128, bias = -128 scale. All exact in the scales' type.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/tensor_source.h"

namespace steadfast {

class AffineReader {
 public:
  virtual ~AffineReader() = default;
  int out() const { return out_; }
  int in() const { return in_; }
  int bits() const { return bits_; }
  int group() const { return group_; }
  int groups() const { return in_ / group_; }
  DType scale_dtype() const { return scale_dtype_; }  // F16, BF16 or F32: scales and biases are exact in it
  // Row r: in() codes, groups() scales, groups() biases.
  virtual void read(int row, std::uint8_t* codes, float* scales, float* biases) const = 0;
  // The bytes of the file are not needed any more.
  virtual void release() const = 0;

 protected:
  int out_ = 0, in_ = 0, bits_ = 0, group_ = 0;
  DType scale_dtype_ = DType::kF16;
};

// GGUF block types. Fails where the tensor is not a matrix of one of them.
Result<std::unique_ptr<AffineReader>> read_gguf_blocks(const TensorSource& source, const TensorView& tensor);
bool is_affine_block(DType dtype);

// MLX: NAME.weight (U32), NAME.scales, NAME.biases with the given bits and group. Errors name the module.
Result<std::unique_ptr<AffineReader>> read_mlx_affine(const TensorSource& source, const std::string& module, int bits,
                                                      int group);

// One row, expanded: fma(code, scale, bias), as the f32 arithmetic does.
void expand_row(const AffineReader& reader, int row, float* out);

}  // namespace steadfast
