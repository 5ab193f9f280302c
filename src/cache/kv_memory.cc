// Memory without scales keeps no allocation for them.
#include "cache/kv_memory.h"

namespace steadfast {

Result<KvMemory> KvMemory::create(Backend& backend, const CacheShape& shape, std::size_t positions) {
  KvMemory memory;
  memory.positions_ = positions;
  const std::size_t side = shape.side_bytes(positions), scales = shape.side_scale_bytes(positions);
  for (const auto& [part, bytes] : {std::pair(&memory.keys_, side), std::pair(&memory.values_, side),
                                    std::pair(&memory.key_scales_, scales), std::pair(&memory.value_scales_, scales)}) {
    if (bytes == 0) continue;
    auto made = backend.allocate(bytes);
    if (!made) return made.status();
    *part = std::move(*made);
  }
  return memory;
}

void KvMemory::place(const CacheShape& shape, int layer, CacheView& view) const {
  view.kv_heads = shape.kv_heads;
  view.dim = shape.dim;
  view.dtype = shape.dtype;
  const std::size_t index = static_cast<std::size_t>(layer) * positions_;
  const std::size_t offset = index * shape.layer_elements(1) * info(shape.dtype).block_bytes;
  view.keys = static_cast<std::byte*>(keys_->data()) + offset;
  view.values = static_cast<std::byte*>(values_->data()) + offset;
  if (!key_scales_) return;
  view.key_scales = static_cast<float*>(key_scales_->data()) + index * shape.layer_scales(1);
  view.value_scales = static_cast<float*>(value_scales_->data()) + index * shape.layer_scales(1);
}

}  // namespace steadfast
