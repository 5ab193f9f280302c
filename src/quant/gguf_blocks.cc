// Decoder of GGUF's blocks of 32: Q4_0, Q4_1, Q8_0 (model-spec 4.2).
#include <cstring>

#include "quant/affine.h"

namespace steadfast {
namespace {

constexpr int kBlock = 32;

std::uint16_t load_u16(const std::byte* p) {
  std::uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

class GgufBlocks : public AffineReader {
 public:
  GgufBlocks(const TensorSource& source, const TensorView& tensor) : source_(&source), tensor_(&tensor) {
    out_ = static_cast<int>(tensor.shape[0]);
    in_ = static_cast<int>(tensor.shape[1]);
    bits_ = tensor.dtype == DType::kQ8_0 ? 8 : 4;
    group_ = kBlock;
    scale_dtype_ = DType::kF16;
  }

  void read(int row, std::uint8_t* codes, float* scales, float* biases) const override {
    const std::size_t block_bytes = info(tensor_->dtype).block_bytes;
    const std::byte* p = tensor_->data.data() + static_cast<std::size_t>(row) * groups() * block_bytes;
    for (int g = 0; g < groups(); ++g, p += block_bytes, codes += kBlock) {
      const float scale = f16_to_f32(load_u16(p));
      scales[g] = scale;
      switch (tensor_->dtype) {
        case DType::kQ4_0:
          biases[g] = -8.0f * scale;
          nibbles(p + 2, codes);
          break;
        case DType::kQ4_1:
          biases[g] = f16_to_f32(load_u16(p + 2));
          nibbles(p + 4, codes);
          break;
        default:
          biases[g] = -128.0f * scale;
          for (int i = 0; i < kBlock; ++i) codes[i] = static_cast<std::uint8_t>(p[2 + i]) ^ 0x80u;
      }
    }
  }

  void release() const override { source_->release(*tensor_); }

 private:
  static void nibbles(const std::byte* p, std::uint8_t* codes) {
    for (int i = 0; i < kBlock / 2; ++i) {
      codes[i] = static_cast<std::uint8_t>(p[i]) & 15u;
      codes[i + kBlock / 2] = static_cast<std::uint8_t>(p[i]) >> 4;
    }
  }

  const TensorSource* source_;
  const TensorView* tensor_;
};

}  // namespace

bool is_affine_block(DType dtype) { return dtype == DType::kQ4_0 || dtype == DType::kQ4_1 || dtype == DType::kQ8_0; }

Result<std::unique_ptr<AffineReader>> read_gguf_blocks(const TensorSource& source, const TensorView& tensor) {
  if (!is_affine_block(tensor.dtype) || tensor.shape.size() != 2)
    return Status::error("tensor {} is not a matrix of quantised blocks", tensor.name);
  if (tensor.shape[0] > (1 << 24) || tensor.shape[1] > (1 << 24))
    return Status::error("tensor {} is {} by {}: larger than any supported model's", tensor.name, tensor.shape[0],
                         tensor.shape[1]);
  return std::unique_ptr<AffineReader>(std::make_unique<GgufBlocks>(source, tensor));
}

}  // namespace steadfast
