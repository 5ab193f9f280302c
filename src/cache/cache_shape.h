// What one model keeps for a stream: keys and values of attention layers, states of recurrent layers.
#pragma once

#include "backend/backend.h"

namespace steadfast {

struct CacheShape {
  int layers = 0, kv_heads = 0, dim = 0;  // attention layers
  DType dtype = DType::kBF16;
  int delta_layers = 0;  // recurrent layers
  DeltaShape delta;
  DeltaStateBytes delta_bytes;  // of one layer, as the backend lays it out

  // Elements of one layer's keys (or values) for `positions`.
  std::size_t layer_elements(int positions) const {
    return static_cast<std::size_t>(kv_heads) * static_cast<std::size_t>(dim) * static_cast<std::size_t>(positions);
  }
  // Scales of one layer's keys (or values) for `positions`: one a row and head in fp8, else none.
  std::size_t layer_scales(int positions) const {
    return dtype == DType::kF8E4M3 ? static_cast<std::size_t>(kv_heads) * static_cast<std::size_t>(positions) : 0;
  }
  // Bytes of all layers' keys (or values), and of their scales, for `positions`.
  std::size_t side_bytes(std::size_t positions) const {
    return static_cast<std::size_t>(layers) * layer_elements(1) * info(dtype).block_bytes * positions;
  }
  std::size_t side_scale_bytes(std::size_t positions) const {
    return static_cast<std::size_t>(layers) * layer_scales(1) * sizeof(float) * positions;
  }
  std::size_t bytes_per_position() const { return 2 * (side_bytes(1) + side_scale_bytes(1)); }
  std::size_t state_bytes() const {
    return static_cast<std::size_t>(delta_layers) * (delta_bytes.conv + delta_bytes.state);
  }
  // Positions that a whole window is rounded up to, and what a stream of that window takes in all.
  static int rounded(int window) { return (window + 63) / 64 * 64; }  // CUDA: tiles of 64
  std::size_t stream_bytes(int window) const {
    return bytes_per_position() * static_cast<std::size_t>(rounded(window)) + state_bytes();
  }
};

}  // namespace steadfast
