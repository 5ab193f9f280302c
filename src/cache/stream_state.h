// What a stream holds on the device: its window of keys and values for every attention layer (whole layout), and the
// recurrent state of every Gated DeltaNet layer. Roll-back of a hybrid: record() before rows that may be taken back,
// Model::roll_back() after them, which replays the rows that stay from the recorded start.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "cache/cache_view.h"

namespace steadfast {

struct CacheShape {
  int layers = 0, kv_heads = 0, dim = 0;  // attention layers
  DType dtype = DType::kBF16;
  int delta_layers = 0;                   // recurrent layers
  DeltaShape delta;

  std::size_t bytes_per_position() const {
    return std::size_t{2} * static_cast<std::size_t>(layers) * static_cast<std::size_t>(kv_heads) * static_cast<std::size_t>(dim) * info(dtype).block_bytes;
  }
  std::size_t state_bytes() const {
    return static_cast<std::size_t>(delta_layers) * (delta_floats() * sizeof(float));
  }
  std::size_t delta_floats() const { return delta_layers > 0 ? delta.conv_floats() + delta.state_floats() : 0; }
};

class StreamState {
 public:
  // window: positions, rounded up to a multiple of 16. The memory is zeroed and, on the CPU, touched only as it fills.
  static Result<std::unique_ptr<StreamState>> create(Backend& backend, const CacheShape& shape, int window);

  int window() const { return window_; }
  const CacheShape& shape() const { return shape_; }
  // layer: index among the attention layers.
  CacheView view(int layer) const;
  // layer: index among the recurrent layers.
  DeltaState delta(int layer) const;

  // Keeps the recurrent states as they are now, and the inputs of up to `rows` rows to come (until the next record).
  Status record(Backend& backend, int rows);
  bool recording() const { return record_rows_ > 0; }
  int recorded() const { return recorded_; }
  // Where the next rows' inputs of a layer go: [mixed | a | b] a row; device memory. CHECKs that they fit.
  float* recorded_inputs(int layer, int first_row, int rows) const;
  int record_width() const { return shape_.delta.conv_width() + 2 * shape_.delta.value_heads; }
  void count_recorded(int rows) { recorded_ += rows; }
  // Back to the states at record().
  Status restore(Backend& backend);
  void stop_recording() { record_rows_ = recorded_ = 0; }

 private:
  CacheShape shape_;
  int window_ = 0, record_rows_ = 0, recorded_ = 0;
  std::unique_ptr<DeviceMemory> keys_, values_, states_, start_, inputs_;
  std::int32_t page_ = 0;  // the page table of a whole window: one page, number 0
};

}  // namespace steadfast
