// Whole windows: one slab of keys and one of values, a layer after another. Pages: a table that grows with the stream.
#include "cache/stream_state.h"

#include <algorithm>
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

// Head by head: positions lie in blocks that the copy may overshoot, since what lies behind is written before it is
// read.
Status StreamState::copy_positions(Backend& backend, const StreamState& from, int positions) {
  CHECK(pool_ == nullptr && from.pool_ == nullptr && positions <= std::min(window_, from.window_),
        "copy of {} positions from a window of {} to one of {}", positions, from.window_, window_);
  const auto elements = static_cast<std::size_t>(CacheShape::rounded(positions)) * static_cast<std::size_t>(shape_.dim);
  const std::size_t size = info(shape_.dtype).block_bytes;
  for (int layer = 0; layer < shape_.layers; ++layer) {
    const CacheView to_view = view(layer), from_view = from.view(layer);
    for (int head = 0; head < shape_.kv_heads; ++head) {
      const auto part = [&](void* base, std::ptrdiff_t offset, std::size_t bytes) {
        return static_cast<std::byte*>(base) + offset * static_cast<std::ptrdiff_t>(bytes);
      };
      for (const auto side : {&CacheView::keys, &CacheView::values}) {
        const auto status = backend.copy(part(to_view.*side, to_view.head_offset(head), size),
                                         part(from_view.*side, from_view.head_offset(head), size), elements * size);
        if (!status) return status;
      }
      for (const auto side : {&CacheView::key_scales, &CacheView::value_scales}) {
        if (to_view.*side == nullptr) continue;
        const auto status = backend.copy(to_view.*side + to_view.scale_head_offset(head),
                                         from_view.*side + from_view.scale_head_offset(head),
                                         static_cast<std::size_t>(CacheShape::rounded(positions)) * sizeof(float));
        if (!status) return status;
      }
    }
  }
  return Status::ok();
}

Status StreamState::clear_states(Backend& backend) {
  if (shape_.delta_layers == 0) return Status::ok();
  return backend.clear(states_->data(), shape_.state_bytes());
}

DeltaState StreamState::delta(int layer) const {
  const DeltaStateBytes& bytes = shape_.delta_bytes;
  auto* base = static_cast<std::byte*>(states_->data()) + static_cast<std::size_t>(layer) * (bytes.conv + bytes.state);
  return {reinterpret_cast<float*>(base), reinterpret_cast<float*>(base + bytes.conv)};
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
