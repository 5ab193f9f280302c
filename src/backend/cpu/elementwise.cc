// Embedding, norms, rotary positions, SiLU product and row copies on the CPU. Rows are shared out among the threads
// where there are enough of them; each row is computed alone.
#include <cstring>

#include "backend/cpu/cpu_backend_impl.h"

namespace steadfast::cpu {
void CpuBackend::embed(const Weight& table, std::span<const TokenId> ids, const Matrix& out) {
  const auto& packed = static_cast<const PackedWeight&>(table);
  over_rows(team_, out.rows, [&](int row) { packed.expand(ids[static_cast<std::size_t>(row)], out.row(row)); });
}

void CpuBackend::rms_norm(const Matrix& x, const float* weight, float eps, const Matrix& out) {
  over_rows(team_, x.rows, [&](int row) { kernels_->rms_norm(x.row(row), weight, x.width, eps, out.row(row)); });
}

void CpuBackend::head_norm(const Matrix& x, int heads, int dim, const float* weight, float eps) {
  over_rows(team_, x.rows, [&](int row) {
    for (int head = 0; head < heads; ++head) {
      float* at = x.row(row) + head * dim;
      kernels_->rms_norm(at, weight, dim, eps, at);
    }
  });
}

void CpuBackend::rope(const Matrix& x, int heads, int dim, const RopeTable& table) {
  const int half = table.dims / 2;
  over_rows(team_, x.rows, [&](int row) {
    const float* cosine = table.cosine + static_cast<std::ptrdiff_t>(row) * half;
    const float* sine = table.sine + static_cast<std::ptrdiff_t>(row) * half;
    for (int head = 0; head < heads; ++head) {
      float* at = x.row(row) + head * dim;
      for (int i = 0; i < half; ++i) {
        const float a = at[i], b = at[i + half];
        at[i] = a * cosine[i] - b * sine[i];
        at[i + half] = b * cosine[i] + a * sine[i];
      }
    }
  });
}

void CpuBackend::silu_mul(const Matrix& gate, const Matrix& up, const Matrix& out) {
  over_rows(team_, gate.rows,
            [&](int row) { kernels_->silu_mul(gate.row(row), up.row(row), gate.width, out.row(row)); });
}

void CpuBackend::gather(const Matrix& x, std::span<const int> rows, const Matrix& out) {
  for (int i = 0; i < out.rows; ++i)
    std::memcpy(out.row(i), x.row(rows[static_cast<std::size_t>(i)]),
                static_cast<std::size_t>(x.width) * sizeof(float));
}

}  // namespace steadfast::cpu
