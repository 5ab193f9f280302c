// Attention and the cache's stores on the CPU. A unit of work is one key-value head of up to 16 rows of one stream that
// share a block of 16 positions: their queries are taken in fours, which changes no row's bits.
#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_backend_impl.h"

namespace steadfast::cpu {
namespace {

struct Unit {
  int piece, head, first_row, rows;  // first_row within the piece
};

KvType kv_type(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return KvType::kBF16;
    case DType::kF8E4M3:
      return KvType::kF8;
    default:
      return KvType::kF32;
  }
}

KvView kernel_view(const CacheView& view, int head) {
  return {view.keys,
          view.values,
          view.pages,
          view.page_shift,
          view.page_stride(),
          view.head_offset(head),
          view.dim,
          kv_type(view.dtype),
          view.key_scales,
          view.value_scales,
          view.scale_page_stride(),
          view.scale_head_offset(head)};
}

template <typename T, typename KeyConvert, typename ValueConvert>
void store_head(const CacheView& view, int head, int position, const float* key, const float* value,
                KeyConvert convert_key, ValueConvert convert_value) {
  const int within = position & ((1 << view.page_shift) - 1);
  const std::ptrdiff_t page = view.pages[position >> view.page_shift] * view.page_stride() + view.head_offset(head);
  T* keys = static_cast<T*>(view.keys) + page + static_cast<std::ptrdiff_t>(within / kLanes * kLanes) * view.dim +
            within % kLanes;
  T* values = static_cast<T*>(view.values) + page + static_cast<std::ptrdiff_t>(within) * view.dim;
  for (int d = 0; d < view.dim; ++d) {
    keys[static_cast<std::ptrdiff_t>(d) * kLanes] = convert_key(key[d]);
    values[d] = convert_value(value[d]);
  }
}

// A row's scale, and what its values are multiplied by before they are rounded: 1 / scale, exact.
std::pair<float, float> f8_scales(const float* row, int dim) {
  float amax = 0;
  for (int d = 0; d < dim; ++d) {
    const float magnitude = std::fabs(row[d]);
    if (!(magnitude <= amax)) amax = magnitude;  // NaN stays
    if (std::isnan(amax)) break;
  }
  const float scale = f8e4m3_scale(amax);
  return {scale, 1.0f / scale};
}

void store_f8(const CacheView& view, int head, int position, const float* key, const float* value) {
  const auto [key_scale, key_factor] = f8_scales(key, view.dim);
  const auto [value_scale, value_factor] = f8_scales(value, view.dim);
  const int page = view.pages[position >> view.page_shift];
  const std::ptrdiff_t at =
      page * view.scale_page_stride() + view.scale_head_offset(head) + (position & ((1 << view.page_shift) - 1));
  view.key_scales[at] = key_scale;
  view.value_scales[at] = value_scale;
  const auto rounded = [](float factor) {
    // Rows that are not finite have a scale of NaN and codes of zero.
    return [factor](float x) { return std::isnan(factor) ? std::uint8_t{0} : f32_to_f8e4m3(x * factor); };
  };
  store_head<std::uint8_t>(view, head, position, key, value, rounded(key_factor), rounded(value_factor));
}

}  // namespace

void CpuBackend::store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) {
  for (int row = 0; row < keys.rows; ++row) {
    for (int head = 0; head < view.kv_heads; ++head) {
      const float* key = keys.row(row) + head * view.dim;
      const float* value = values.row(row) + head * view.dim;
      const int position = first_position + row;
      const auto same = [](float x) { return x; };
      switch (view.dtype) {
        case DType::kBF16:
          store_head<std::uint16_t>(view, head, position, key, value, f32_to_bf16, f32_to_bf16);
          break;
        case DType::kF8E4M3:
          store_f8(view, head, position, key, value);
          break;
        default:
          store_head<float>(view, head, position, key, value, same, same);
      }
    }
  }
}

void CpuBackend::attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                           std::span<const CacheView> views, const Matrix& out) {
  std::vector<Unit> units;
  for (int p = 0; p < static_cast<int>(pieces.size()); ++p) {
    const Piece& piece = pieces[static_cast<std::size_t>(p)];
    for (int row = 0; row < piece.rows;) {
      const int left_in_block = kLanes - (piece.first_position + row) % kLanes;
      const int rows = std::min(left_in_block, piece.rows - row);
      for (int head = 0; head < shape.kv_heads; ++head) units.push_back({p, head, row, rows});
      row += rows;
    }
  }
  const auto scratch_floats = static_cast<std::size_t>(attention_scratch(shape.dim));
  scratch_.resize(static_cast<std::size_t>(team_.threads()));
  for (auto& scratch : scratch_)
    if (scratch.size() < scratch_floats) scratch.resize(scratch_floats);
  const int share = shape.heads / shape.kv_heads;
  // The longest units come last in a prompt; handing out from the end evens the threads' loads.
  const int count = static_cast<int>(units.size());
  team_.run(count, [&](int index, int thread) {
    const Unit& unit = units[static_cast<std::size_t>(count - 1 - index)];
    const Piece& piece = pieces[static_cast<std::size_t>(unit.piece)];
    AttentionCall call;
    call.kv = kernel_view(views[static_cast<std::size_t>(unit.piece)], unit.head);
    call.scale = shape.scale;
    call.scratch = scratch_[static_cast<std::size_t>(thread)].data();
    const int all = unit.rows * share;
    for (int first = 0; first < all; first += kMaxQueries) {
      call.queries = std::min(kMaxQueries, all - first);
      for (int q = 0; q < call.queries; ++q) {
        const int row = unit.first_row + (first + q) / share;
        const int head = unit.head * share + (first + q) % share;
        call.query[q] = queries.row(piece.first_row + row) + head * shape.dim;
        call.out[q] = out.row(piece.first_row + row) + head * shape.dim;
        call.position[q] = piece.first_position + row;
      }
      kernels_->attention(call);
    }
  });
}

}  // namespace steadfast::cpu
