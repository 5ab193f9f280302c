// Attention of a round's rows over their streams' caches, and the stores that fill these.
// queries, out [rows, heads * dim]; query head j reads key-value head j / (heads / kv_heads). Row at position p sees
// 0..p. Arithmetic: spans of 512 absolute positions in order; within a span exact maximum, e^(s - max), chains over
// positions; spans folded in order (backend/cpu/kernels_impl.h states it step by step). Whole and paged read through
// one CacheView. rope: half rotation of the first table.dims of each head: (a, b) -> (a cos - b sin, b cos + a sin),
// pairs (i, i + dims/2).
#pragma once

#include "backend/backend.h"

namespace steadfast::ops {

inline void rope(Backend& backend, const Matrix& x, int heads, int dim, const RopeTable& table) {
  CHECK(table.dims <= dim && heads * dim <= x.width, "rope: {} dims of {} heads of {} in rows of {}", table.dims, heads,
        dim, x.width);
  backend.rope(x, heads, dim, table);
}

// keys, values [rows, kv_heads * dim] of one piece go to positions first_position...; rounded to the cache's type.
inline void store_kv(Backend& backend, const Matrix& keys, const Matrix& values, const CacheView& view,
                     int first_position) {
  CHECK(keys.rows == values.rows && keys.width == view.kv_heads * view.dim && values.width == keys.width,
        "store_kv: rows of {} and {} for {} heads of {}", keys.width, values.width, view.kv_heads, view.dim);
  backend.store_kv(keys, values, view, first_position);
}

// What lies between the projections and attention, in one: norms of heads (norm.h) where given, rope, store_kv of each
// piece.
inline void rotate_and_store(Backend& backend, const Matrix& queries, const Matrix& keys, const Matrix& values,
                             const AttentionShape& shape, const HeadNorms& norms, const RopeTable& table,
                             std::span<const Piece> pieces, std::span<const CacheView> views) {
  CHECK(pieces.size() == views.size(), "rotate_and_store: {} pieces, {} views", pieces.size(), views.size());
  CHECK(table.dims <= shape.dim && queries.width == shape.heads * shape.dim &&
            keys.width == shape.kv_heads * shape.dim && values.width == keys.width,
        "rotate_and_store: rows of {}, {} and {} for {} heads over {} of {}", queries.width, keys.width, values.width,
        shape.heads, shape.kv_heads, shape.dim);
  backend.rotate_and_store(queries, keys, values, shape, norms, table, pieces, views);
}

// One view for each piece; the pieces' rows are stored already.
inline void attention(Backend& backend, const Matrix& queries, const AttentionShape& shape,
                      std::span<const Piece> pieces, std::span<const CacheView> views, const Matrix& out) {
  CHECK(pieces.size() == views.size(), "attention: {} pieces, {} views", pieces.size(), views.size());
  CHECK(shape.heads % shape.kv_heads == 0 && shape.dim % 16 == 0, "attention: {} heads over {}, dim {}", shape.heads,
        shape.kv_heads, shape.dim);
  CHECK(queries.width == shape.heads * shape.dim && out.width == queries.width, "attention: rows of {} and {}",
        queries.width, out.width);
  backend.attention(queries, shape, pieces, views, out);
}

}  // namespace steadfast::ops
