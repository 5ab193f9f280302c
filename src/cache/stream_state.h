// What a stream holds on the device: its window of keys and values for every layer (whole layout).
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "cache/cache_view.h"

namespace steadfast {

struct CacheShape {
  int layers = 0, kv_heads = 0, dim = 0;
  DType dtype = DType::kBF16;

  std::size_t bytes_per_position() const {
    return std::size_t{2} * static_cast<std::size_t>(layers) * static_cast<std::size_t>(kv_heads) * static_cast<std::size_t>(dim) * info(dtype).block_bytes;
  }
};

class StreamState {
 public:
  // window: positions, rounded up to a multiple of 16. The memory is zeroed and, on the CPU, touched only as it fills.
  static Result<std::unique_ptr<StreamState>> create(Backend& backend, const CacheShape& shape, int window);

  int window() const { return window_; }
  CacheView view(int layer) const;

 private:
  CacheShape shape_;
  int window_ = 0;
  std::unique_ptr<DeviceMemory> keys_, values_;
  std::int32_t page_ = 0;  // the page table of a whole window: one page, number 0
};

}  // namespace steadfast
