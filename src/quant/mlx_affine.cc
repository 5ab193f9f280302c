// Decoder of MLX's affine mode: a row is a little-endian bit stream of codes (model-spec 3.1-3.3).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "quant/affine.h"

namespace steadfast {
namespace {

class MlxAffine : public AffineReader {
 public:
  MlxAffine(const TensorSource& source, const TensorView& weight, const TensorView& scales, const TensorView& biases,
            int bits, int group)
      : source_(&source), weight_(&weight), scales_(&scales), biases_(&biases) {
    out_ = static_cast<int>(weight.shape[0]);
    in_ = static_cast<int>(scales.shape[1]) * group;
    bits_ = bits;
    group_ = group;
    scale_dtype_ = scales.dtype;
  }

  void read(int row, std::uint8_t* codes, float* scales, float* biases) const override {
    const std::size_t row_bytes = static_cast<std::size_t>(in_) * bits_ / 8;
    const auto* p = reinterpret_cast<const std::uint8_t*>(weight_->data.data()) + row * row_bytes;
    const unsigned mask = (1u << bits_) - 1;
    for (int i = 0; i < in_; ++i) {
      const std::size_t bit = static_cast<std::size_t>(i) * bits_;
      unsigned word = p[bit / 8];
      if (bit % 8 + bits_ > 8) word |= static_cast<unsigned>(p[bit / 8 + 1]) << 8;
      codes[i] = static_cast<std::uint8_t>((word >> (bit % 8)) & mask);
    }
    floats(*scales_, row, scales);
    floats(*biases_, row, biases);
  }

  void release() const override {
    source_->release(*weight_);
    source_->release(*scales_);
    source_->release(*biases_);
  }

 private:
  void floats(const TensorView& tensor, int row, float* out) const {
    const std::size_t size = info(tensor.dtype).block_bytes;
    const std::byte* p = tensor.data.data() + static_cast<std::size_t>(row) * groups() * size;
    for (int g = 0; g < groups(); ++g, p += size) {
      if (size == 4) {
        std::memcpy(out + g, p, 4);
      } else {
        std::uint16_t half;
        std::memcpy(&half, p, 2);
        out[g] = tensor.dtype == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
      }
    }
  }

  const TensorSource* source_;
  const TensorView *weight_, *scales_, *biases_;
};

bool is_float(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32; }

}  // namespace

Result<std::unique_ptr<AffineReader>> read_mlx_affine(const TensorSource& source, const std::string& module, int bits,
                                                      int group) {
  const TensorView* weight = source.find(module + ".weight");
  const TensorView* scales = source.find(module + ".scales");
  const TensorView* biases = source.find(module + ".biases");
  for (const auto& [tensor, part] : {std::pair(weight, "weight"), {scales, "scales"}, {biases, "biases"}})
    if (tensor == nullptr)
      return Status::error("{} is quantised but the model lacks tensor {}.{}; is the download complete?", module,
                           module, part);
  if (bits != 2 && bits != 3 && bits != 4 && bits != 5 && bits != 6 && bits != 8)
    return Status::error("{} has {} bits; 2, 3, 4, 5, 6 and 8 are supported", module, bits);
  if (group != 32 && group != 64 && group != 128)
    return Status::error("{} has groups of {}; 32, 64 and 128 are supported", module, group);
  if (weight->dtype != DType::kU32 || weight->shape.size() != 2 || scales->shape.size() != 2)
    return Status::error("{}: quantised weights must be a U32 matrix with a matrix of scales; the weight is {}", module,
                         info(weight->dtype).name);
  if (!is_float(scales->dtype) || biases->dtype != scales->dtype)
    return Status::error("{}: scales and biases must both be F16, BF16 or F32, not {} and {}", module,
                         info(scales->dtype).name, info(biases->dtype).name);
  if (scales->shape != biases->shape || scales->shape[0] != weight->shape[0])
    return Status::error("{}: weight [{}], scales [{}] and biases [{}] do not fit each other", module,
                         fmt::join(weight->shape, ", "), fmt::join(scales->shape, ", "),
                         fmt::join(biases->shape, ", "));
  const std::int64_t in = scales->shape[1] * group;
  if (weight->shape[1] * 32 != in * bits)
    return Status::error(
        "{}: {} words a row do not hold {} groups of {} at {} bits, as config.json says; by its shapes it has {:.4g} "
        "bits",
        module, weight->shape[1], scales->shape[1], group, bits,
        32.0 * static_cast<double>(weight->shape[1]) / static_cast<double>(std::max<std::int64_t>(in, 1)));
  if (in > (1 << 24) || weight->shape[0] > (1 << 24) || in == 0 || weight->shape[0] == 0)
    return Status::error("{} is {} by {}: not a supported size", module, weight->shape[0], in);
  return std::unique_ptr<AffineReader>(std::make_unique<MlxAffine>(source, *weight, *scales, *biases, bits, group));
}

}  // namespace steadfast
