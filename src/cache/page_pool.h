// The pool of pages: keys and values of every attention layer, cut into pages of equal length that streams share.
// A page is counted: one for each stream and kept prefix that holds it; at zero it is free. A page with a count above
// one is never written. Used by the engine's thread alone.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "cache/kv_memory.h"

namespace steadfast {

class PagePool {
 public:
  // page_positions: a power of two from 16 to 1,024.
  static Result<std::unique_ptr<PagePool>> create(Backend& backend, const CacheShape& shape, int page_positions,
                                                  int pages);
  static Status check_page(int page_positions);

  int page_positions() const { return page_positions_; }
  int pages() const { return static_cast<int>(counts_.size()); }
  int free_pages() const { return static_cast<int>(free_.size()); }
  const CacheShape& shape() const { return shape_; }
  std::size_t page_bytes() const { return shape_.bytes_per_position() * static_cast<std::size_t>(page_positions_); }

  int take();            // a free page with count 1; -1: none is free
  void share(int page);  // count + 1
  void drop(int page);   // count - 1
  int count(int page) const { return counts_[static_cast<std::size_t>(page)]; }

  // Where a layer's keys, values and (fp8) scales lie for all pages.
  void place(int layer, CacheView& view) const;

 private:
  CacheShape shape_;
  int page_positions_ = 0;
  KvMemory memory_;
  std::vector<int> counts_, free_;
};

}  // namespace steadfast
