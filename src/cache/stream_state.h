// What a stream holds on the device: keys and values of every attention layer, in a window of its own (whole) or on
// pages of a pool (paged), and the recurrent state of every Gated DeltaNet layer. Roll-back of a hybrid: record()
// before rows that may be taken back, Model::roll_back() after them, which replays the rows that stay from the recorded
// start.
#pragma once

#include <memory>
#include <vector>

#include "cache/cache_view.h"
#include "cache/page_pool.h"

namespace steadfast {

class StreamState {
 public:
  // window: positions, rounded up to a multiple of 64. The memory is zeroed and, on the CPU, touched only as it fills.
  static Result<std::unique_ptr<StreamState>> create(Backend& backend, const CacheShape& shape, int window);

  // The same on pages of the pool, which must outlive it; reserve() takes them as positions fill.
  static Result<std::unique_ptr<StreamState>> create_paged(Backend& backend, PagePool& pool, int window);
  StreamState() = default;
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;
  ~StreamState();

  int window() const { return window_; }
  // Makes positions [0, positions) usable; false: the pool is short (what was taken is kept). Whole windows always can.
  bool reserve(int positions);
  // Starts on shared pages that hold the first pages * page_positions positions; before any reserve().
  void adopt(std::span<const std::int32_t> pages);
  std::span<const std::int32_t> pages() const { return table_; }
  // Holds `page` as its index-th page instead of the one it has; both hold the same bits.
  void exchange(std::size_t index, std::int32_t page);
  // Takes the first `positions` positions of another whole window of the same shape; not its recurrent states.
  Status copy_positions(Backend& backend, const StreamState& from, int positions);
  // Recurrent states as at a stream's start.
  Status clear_states(Backend& backend);
  // All recurrent states in one block, for keeping and resuming them.
  void* state_data() const { return states_->data(); }
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
  // [mixed | a | b], rounded up to whole 16 bytes.
  int record_width() const { return (shape_.delta.conv_width() + 2 * shape_.delta.value_heads + 3) / 4 * 4; }
  void count_recorded(int first_position, int rows) {
    if (recorded_ == 0) record_position_ = first_position;
    recorded_ += rows;
  }
  int record_position() const { return record_position_; }  // of the first recorded row
  // Back to the states at record().
  Status restore(Backend& backend);
  void stop_recording() { record_rows_ = recorded_ = 0; }

 private:
  CacheShape shape_;
  int window_ = 0, record_rows_ = 0, recorded_ = 0, record_position_ = 0;
  KvMemory memory_;  // whole only
  std::unique_ptr<DeviceMemory> states_, start_, inputs_;
  PagePool* pool_ = nullptr;         // nullptr: whole
  std::vector<std::int32_t> table_;  // a whole window is one page, number 0
};

}  // namespace steadfast
