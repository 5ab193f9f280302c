// Whole windows: one slab of keys and one of values, a layer after another. Pages: a table that grows with the stream.
#include "cache/stream_state.h"

#include <bit>

namespace steadfast {

Result<std::unique_ptr<StreamState>> StreamState::create(Backend& backend, const CacheShape& shape, int window) {
  auto state = std::make_unique<StreamState>();
  state->shape_ = shape;
  state->window_ = CacheShape::rounded(window);
  auto memory = KvMemory::create(backend, shape, static_cast<std::size_t>(state->window_));
  if (!memory) return memory.status();
  auto states = backend.allocate(shape.state_bytes());
  if (!states) return states.status();
  state->memory_ = std::move(*memory);
  state->states_ = std::move(*states);
  state->table_ = {0};
  return state;
}

Result<std::unique_ptr<StreamState>> StreamState::create_paged(Backend& backend, PagePool& pool, int window) {
  auto state = std::make_unique<StreamState>();
  state->shape_ = pool.shape();
  state->pool_ = &pool;
  const int page = pool.page_positions();
  state->window_ = (window + page - 1) / page * page;
  auto states = backend.allocate(pool.shape().state_bytes());
  if (!states) return states.status();
  state->states_ = std::move(*states);
  return state;
}

StreamState::~StreamState() {
  if (pool_ == nullptr) return;
  for (const auto page : table_) pool_->drop(page);
}

bool StreamState::reserve(int positions) {
  CHECK(positions <= window_, "reserve: {} positions in a window of {}", positions, window_);
  if (pool_ == nullptr) return true;
  while (static_cast<int>(table_.size()) * pool_->page_positions() < positions) {
    const int page = pool_->take();
    if (page < 0) return false;
    table_.push_back(page);
  }
  return true;
}

void StreamState::adopt(std::span<const std::int32_t> pages) {
  CHECK(pool_ != nullptr && table_.empty(), "adopt: a stream that has {} pages", table_.size());
  for (const auto page : pages) {
    pool_->share(page);
    table_.push_back(page);
  }
}

void StreamState::exchange(std::size_t index, std::int32_t page) {
  pool_->share(page);
  pool_->drop(table_[index]);
  table_[index] = page;
}

CacheView StreamState::view(int layer) const {
  CacheView view;
  view.pages = table_.data();
  if (pool_ != nullptr) {
    view.page_positions = pool_->page_positions();
    view.page_shift = std::countr_zero(static_cast<unsigned>(pool_->page_positions()));
    pool_->place(layer, view);
    return view;
  }
  view.page_positions = window_;
  memory_.place(shape_, layer, view);
  return view;
}

DeltaState StreamState::delta(int layer) const {
  auto* base = static_cast<float*>(states_->data()) + static_cast<std::size_t>(layer) * shape_.delta_floats();
  return {base, base + shape_.delta.conv_floats()};
}

Status StreamState::record(Backend& backend, int rows) {
  CHECK(rows > 0, "record: {} rows", rows);
  recorded_ = 0;
  record_rows_ = rows;
  if (shape_.delta_layers == 0) return Status::ok();
  if (!start_) {
    auto memory = backend.allocate(shape_.state_bytes());
    if (!memory) return memory.status();
    start_ = std::move(*memory);
  }
  const std::size_t bytes =
      static_cast<std::size_t>(shape_.delta_layers) * static_cast<std::size_t>(rows * record_width()) * sizeof(float);
  if (!inputs_ || inputs_->bytes() < bytes) {
    auto memory = backend.allocate(bytes);
    if (!memory) return memory.status();
    inputs_ = std::move(*memory);
  }
  return backend.copy(start_->data(), states_->data(), shape_.state_bytes());
}

float* StreamState::recorded_inputs(int layer, int first_row, int rows) const {
  CHECK(first_row >= 0 && first_row + rows <= record_rows_, "rows {} to {} of {} recorded", first_row, first_row + rows,
        record_rows_);
  return static_cast<float*>(inputs_->data()) +
         (static_cast<std::ptrdiff_t>(layer) * record_rows_ + first_row) * record_width();
}

Status StreamState::restore(Backend& backend) {
  if (shape_.delta_layers == 0) return Status::ok();
  return backend.copy(states_->data(), start_->data(), shape_.state_bytes());
}

}  // namespace steadfast
