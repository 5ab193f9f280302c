// CacheView answers one question: where do the key and value of position p lie? Nothing else knows the layout.
// Whole: one page as long as the window. Paged: a page table. Kernels read both through the same struct.
// Elements of a layer lie as [page][key-value head][page_positions * dim]; inside a head's part the layout is the
// backend's. CPU: blocks of 16 positions, keys as [dim][16], values as [16][dim].
// FP8 (e4m3): the row of one position and head has a scale for its key and one for its value, powers of two: the least
// that keeps the row's largest magnitude at or below 448. They lie apart, as [page][key-value head][page_positions].
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace steadfast {

struct CacheView {
  void* keys = nullptr;  // of one layer, on the backend's device
  void* values = nullptr;
  float* key_scales = nullptr;  // FP8 only
  float* value_scales = nullptr;
  const std::int32_t* pages = nullptr;  // page of position p: pages[p >> page_shift]
  int page_shift = 30;
  int page_positions = 0;  // power of two from 16, or a window: multiple of 64; the distance between heads of a page
  int kv_heads = 0;
  int dim = 0;
  DType dtype = DType::kBF16;  // BF16, F32 or F8E4M3

  std::ptrdiff_t page_stride() const { return static_cast<std::ptrdiff_t>(kv_heads) * page_positions * dim; }
  std::ptrdiff_t head_offset(int head) const { return static_cast<std::ptrdiff_t>(head) * page_positions * dim; }
  // Of the scales' planes.
  std::ptrdiff_t scale_page_stride() const { return static_cast<std::ptrdiff_t>(kv_heads) * page_positions; }
  std::ptrdiff_t scale_head_offset(int head) const { return static_cast<std::ptrdiff_t>(head) * page_positions; }
};

}  // namespace steadfast
