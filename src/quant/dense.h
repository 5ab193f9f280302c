// An unquantised tensor (BF16, F16, F32) read row by row as float32; exact both ways.
#pragma once

#include "formats/tensor_source.h"

namespace steadfast {

class DenseReader {
 public:
  // Fails where the tensor is not a vector or matrix of floats.
  static Result<DenseReader> open(const TensorSource& source, const TensorView& tensor);

  int out() const { return out_; }
  int in() const { return in_; }
  DType dtype() const { return tensor_->dtype; }
  void read(int row, float* out) const;
  void release() const { source_->release(*tensor_); }

 private:
  const TensorSource* source_ = nullptr;
  const TensorView* tensor_ = nullptr;
  int out_ = 0, in_ = 0;
};

}  // namespace steadfast
