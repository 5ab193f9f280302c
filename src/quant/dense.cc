// Reader of unquantised tensors; a vector counts as one row.
#include "quant/dense.h"

#include <cstring>

namespace steadfast {

Result<DenseReader> DenseReader::open(const TensorSource& source, const TensorView& tensor) {
  if (tensor.dtype != DType::kF32 && tensor.dtype != DType::kF16 && tensor.dtype != DType::kBF16)
    return Status::error("tensor {} is {}; F32, F16 or BF16 is needed here", tensor.name, info(tensor.dtype).name);
  std::int64_t rows = 1, width = 1;
  if (tensor.shape.empty())
    return Status::error("tensor {} is a single number; a vector or matrix is needed", tensor.name);
  width = tensor.shape.back();
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  if (rows < 1 || width < 1 || rows > (1 << 24) || width > (1 << 24))
    return Status::error("tensor {} is {} by {}: not a supported size", tensor.name, rows, width);
  DenseReader reader;
  reader.source_ = &source;
  reader.tensor_ = &tensor;
  reader.out_ = static_cast<int>(rows);
  reader.in_ = static_cast<int>(width);
  return reader;
}

void DenseReader::read(int row, float* out) const {
  const std::size_t size = info(tensor_->dtype).block_bytes;
  const std::byte* p = tensor_->data.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(in_) * size;
  if (size == 4) {
    std::memcpy(out, p, static_cast<std::size_t>(in_) * 4);
    return;
  }
  for (int i = 0; i < in_; ++i, p += 2) {
    std::uint16_t bits;
    std::memcpy(&bits, p, 2);
    out[i] = tensor_->dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}

}  // namespace steadfast
