// Attention and the cache's stores on the CPU. A unit of work is one key-value head of up to 16 rows of one stream that
// share a block of 16 positions: their queries are taken in fours, which changes no row's bits.
#include <algorithm>

#include "backend/cpu/cpu_backend_impl.h"

namespace steadfast::cpu {
namespace {

struct Unit {
  int piece, head, first_row, rows;  // first_row within the piece
};

KvView kernel_view(const CacheView& view, int head) {
  return {view.keys,          view.values,
          view.pages,         view.page_shift,
          view.page_stride(), view.head_offset(head),
          view.dim,           view.dtype == DType::kBF16};
}

template <typename T, typename Convert>
void store_head(const CacheView& view, int head, int position, const float* key, const float* value, Convert convert) {
  const int within = position & ((1 << view.page_shift) - 1);
  const std::ptrdiff_t page = view.pages[position >> view.page_shift] * view.page_stride() + view.head_offset(head);
  T* keys = static_cast<T*>(view.keys) + page + static_cast<std::ptrdiff_t>(within / kLanes * kLanes) * view.dim +
            within % kLanes;
  T* values = static_cast<T*>(view.values) + page + static_cast<std::ptrdiff_t>(within) * view.dim;
  for (int d = 0; d < view.dim; ++d) {
    keys[static_cast<std::ptrdiff_t>(d) * kLanes] = convert(key[d]);
    values[d] = convert(value[d]);
  }
}

}  // namespace

void CpuBackend::store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) {
  for (int row = 0; row < keys.rows; ++row) {
    for (int head = 0; head < view.kv_heads; ++head) {
      const float* key = keys.row(row) + head * view.dim;
      const float* value = values.row(row) + head * view.dim;
      if (view.dtype == DType::kBF16) {
        store_head<std::uint16_t>(view, head, first_position + row, key, value, f32_to_bf16);
      } else {
        store_head<float>(view, head, first_position + row, key, value, [](float x) { return x; });
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
