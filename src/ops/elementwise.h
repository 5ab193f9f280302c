// embed: out row r = table's row ids[r], expanded to float32. silu_mul: out = gate / (1 + e^-gate) * up; out may be
// gate. gather: out row i = x's row rows[i].
#pragma once

#include "backend/backend.h"

namespace steadfast::ops {

inline void embed(Backend& backend, const Weight& table, std::span<const TokenId> ids, const Matrix& out) {
  CHECK(ids.size() == static_cast<std::size_t>(out.rows) && out.width == table.in(), "embed: {} ids, out {} by {}",
        ids.size(), out.rows, out.width);
  for (const TokenId id : ids) CHECK(id >= 0 && id < table.out(), "embed: id {} of {}", id, table.out());
  backend.embed(table, ids, out);
}

inline void silu_mul(Backend& backend, const Matrix& gate, const Matrix& up, const Matrix& out) {
  CHECK(gate.rows == up.rows && gate.width == up.width && out.width == gate.width, "silu_mul: {} and {} wide",
        gate.width, up.width);
  backend.silu_mul(gate, up, out);
}

inline void gather(Backend& backend, const Matrix& x, std::span<const int> rows, const Matrix& out) {
  for (const int row : rows) CHECK(row >= 0 && row < x.rows, "gather: row {} of {}", row, x.rows);
  backend.gather(x, rows, out);
}

}  // namespace steadfast::ops
