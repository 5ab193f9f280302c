// Tables are put with room to a power of two of pages, so that the arena's addresses seldom change as streams grow.
#include "backend/cuda/kv_pieces.h"

#include <algorithm>
#include <bit>

namespace steadfast::cuda {

Status check_kv(DType dtype, int dim) {
  if (dtype != DType::kBF16 && dtype != DType::kF8E4M3)
    return Status::error("--kv-dtype {}: on CUDA keys and values are kept as bf16 or fp8; choose one of them",
                         info(dtype).name);
  if (dim < 16 || dim > 256 || dim % 16 != 0)
    return Status::error(
        "attention heads of {} dims: on CUDA they must be a multiple of 16 up to 256; use --device cpu", dim);
  return Status::ok();
}

KvPieces list_pieces(Recorder& recorder, std::span<const Piece> pieces, std::span<const CacheView> views) {
  CHECK(!pieces.empty() && pieces.size() == views.size(), "{} pieces, {} views", pieces.size(), views.size());
  const auto pages_of = [&](std::size_t i) {
    return static_cast<std::size_t>((pieces[i].first_position + pieces[i].rows - 1) >> views[i].page_shift) + 1;
  };
  std::size_t stride = 1;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (views[i].page_shift < 30) stride = std::max({stride, std::size_t{64}, std::bit_ceil(pages_of(i))});
  std::vector<std::int32_t> tables(stride * pieces.size(), 0);
  KvPieces all;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const CacheView& view = views[i];
    CHECK(pieces[i].first_row == all.rows && pieces[i].rows > 0, "piece {}: rows {} from row {}, {} before it", i,
          pieces[i].rows, pieces[i].first_row, all.rows);
    CHECK(view.page_positions % 16 == 0 && (view.page_positions < 64 || view.page_positions % 64 == 0) &&
              view.dim == views[0].dim && view.kv_heads == views[0].kv_heads && view.dtype == views[0].dtype,
          "a view of pages of {}, {} heads of {}", view.page_positions, view.kv_heads, view.dim);
    std::copy_n(view.pages, pages_of(i), tables.begin() + static_cast<std::ptrdiff_t>(stride * i));
    all.list.push_back({static_cast<std::byte*>(view.keys), static_cast<std::byte*>(view.values), view.key_scales,
                        view.value_scales, pieces[i].first_row, pieces[i].rows, pieces[i].first_position,
                        static_cast<std::int32_t>(stride * i), view.page_shift, view.page_positions});
    all.rows += pieces[i].rows;
  }
  all.tables = recorder.put<std::int32_t>(tables);
  all.kv_heads = views[0].kv_heads;
  all.dim = views[0].dim;
  all.fp8 = views[0].dtype == DType::kF8E4M3;
  return all;
}

}  // namespace steadfast::cuda
