// rms_norm: y = x * (1 / sqrt(mean(x^2) + eps)) * weight, over a row of any width; x may be out.
// head_norm: the same over each head of `dim` values of a row, in place; one weight [dim] for all heads.
// Arithmetic: squares in 16 chains (index mod 16), the tree 16 -> 8 -> 4 -> 2 -> 1, 1 / sqrt by IEEE operations.
#pragma once

#include "backend/backend.h"

namespace steadfast::ops {

inline void rms_norm(Backend& backend, const Matrix& x, const float* weight, float eps, const Matrix& out) {
  CHECK(x.rows == out.rows && x.width == out.width, "rms_norm: x {} by {}, out {} by {}", x.rows, x.width, out.rows,
        out.width);
  backend.rms_norm(x, weight, eps, out);
}

inline void head_norm(Backend& backend, const Matrix& x, int heads, int dim, const float* weight, float eps) {
  CHECK(heads * dim <= x.width, "head_norm: {} heads of {} in rows of {}", heads, dim, x.width);
  backend.head_norm(x, heads, dim, weight, eps);
}

}  // namespace steadfast::ops
