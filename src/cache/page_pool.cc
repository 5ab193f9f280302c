// Pages are handed out lowest number first while the pool is fresh, later in the order in which they became free.
#include "cache/page_pool.h"

#include <bit>

namespace steadfast {

Status PagePool::check_page(int page_positions) {
  if (page_positions < 16 || page_positions > 1024 || !std::has_single_bit(static_cast<unsigned>(page_positions)))
    return Status::error("--page {}: use 16, 32, 64, 128, 256, 512 or 1024 positions", page_positions);
  return Status::ok();
}

Result<std::unique_ptr<PagePool>> PagePool::create(Backend& backend, const CacheShape& shape, int page_positions,
                                                   int pages) {
  if (auto status = check_page(page_positions); !status) return status;
  CHECK(pages > 0, "a pool of {} pages", pages);
  auto pool = std::make_unique<PagePool>();
  pool->shape_ = shape;
  pool->page_positions_ = page_positions;
  pool->counts_.assign(static_cast<std::size_t>(pages), 0);
  for (int page = pages; page-- > 0;) pool->free_.push_back(page);
  auto memory =
      KvMemory::create(backend, shape, static_cast<std::size_t>(page_positions) * static_cast<std::size_t>(pages));
  if (!memory) return memory.status();
  pool->memory_ = std::move(*memory);
  return pool;
}

int PagePool::take() {
  if (free_.empty()) return -1;
  const int page = free_.back();
  free_.pop_back();
  counts_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void PagePool::share(int page) {
  CHECK(page >= 0 && page < pages() && count(page) > 0, "share: page {} of {}", page, pages());
  ++counts_[static_cast<std::size_t>(page)];
}

void PagePool::drop(int page) {
  CHECK(page >= 0 && page < pages() && count(page) > 0, "drop: page {} of {}", page, pages());
  if (--counts_[static_cast<std::size_t>(page)] == 0) free_.push_back(page);
}

void PagePool::place(int layer, CacheView& view) const { memory_.place(shape_, layer, view); }

}  // namespace steadfast
