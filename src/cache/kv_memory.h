// Keys and values of every attention layer for a number of positions, and in fp8 their scales: what a window or a pool
// of pages allocates. Layers lie one after another.
#pragma once

#include "cache/cache_shape.h"
#include "cache/cache_view.h"

namespace steadfast {

class KvMemory {
 public:
  static Result<KvMemory> create(Backend& backend, const CacheShape& shape, std::size_t positions);

  // Points the view at a layer; its page table and sizes are the caller's.
  void place(const CacheShape& shape, int layer, CacheView& view) const;

 private:
  std::size_t positions_ = 0;
  std::unique_ptr<DeviceMemory> keys_, values_, key_scales_, value_scales_;
};

}  // namespace steadfast
