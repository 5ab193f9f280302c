// Whole windows: one slab of keys and one of values, a layer after another.
#include "cache/stream_state.h"

namespace steadfast {

Result<std::unique_ptr<StreamState>> StreamState::create(Backend& backend, const CacheShape& shape, int window) {
  auto state = std::make_unique<StreamState>();
  state->shape_ = shape;
  state->window_ = (window + 15) / 16 * 16;
  const std::size_t bytes = shape.bytes_per_position() / 2 * static_cast<std::size_t>(state->window_);
  auto keys = backend.allocate(bytes);
  if (!keys) return keys.status();
  auto values = backend.allocate(bytes);
  if (!values) return values.status();
  state->keys_ = std::move(*keys);
  state->values_ = std::move(*values);
  return state;
}

CacheView StreamState::view(int layer) const {
  CacheView view;
  view.pages = &page_;
  view.page_positions = window_;
  view.kv_heads = shape_.kv_heads;
  view.dim = shape_.dim;
  view.dtype = shape_.dtype;
  const std::ptrdiff_t offset = layer * view.page_stride() * static_cast<std::ptrdiff_t>(info(shape_.dtype).block_bytes);
  view.keys = static_cast<std::byte*>(keys_->data()) + offset;
  view.values = static_cast<std::byte*>(values_->data()) + offset;
  return view;
}

}  // namespace steadfast
