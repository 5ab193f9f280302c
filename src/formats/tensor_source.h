// What every weight file looks like to the model: named tensors, bounds checked, in mapped memory.
// Shapes are row-major as in torch: a linear's weight is [out, in]. Data may be unaligned: copy, never cast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace steadfast {

struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;  // exactly the bytes that dtype and shape need

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (auto extent : shape) count *= extent;
    return count;
  }
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const TensorView* find(std::string_view name) const = 0;  // nullptr: not there
  virtual std::vector<std::string> names() const = 0;               // in file order
  // The pages of this tensor are not needed any more (it was packed): give them back. Reading stays legal.
  virtual void release(const TensorView& tensor) const = 0;
  // This tensor is read soon: the system may start reading it. A hint, which does nothing for bytes in memory.
  virtual void will_need(const TensorView&) const {}
};

}  // namespace steadfast
