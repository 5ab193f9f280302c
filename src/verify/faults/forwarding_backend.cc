// Calls handed on, and the host's copies of rows.
#include "verify/faults/forwarding_backend.h"

namespace steadfast {

Result<std::unique_ptr<Weight>> ForwardingBackend::pack(const AffineReader& reader, std::span<const int> row_map) {
  return inner_->pack(reader, row_map);
}
Result<std::unique_ptr<Weight>> ForwardingBackend::pack(const DenseReader& reader, std::span<const int> row_map) {
  return inner_->pack(reader, row_map);
}
Result<std::unique_ptr<DeviceMemory>> ForwardingBackend::allocate(std::size_t bytes) { return inner_->allocate(bytes); }
Status ForwardingBackend::upload(void* device, const void* host, std::size_t bytes) {
  return inner_->upload(device, host, bytes);
}
Status ForwardingBackend::download(void* host, const void* device, std::size_t bytes) {
  return inner_->download(host, device, bytes);
}
Status ForwardingBackend::copy(void* to, const void* from, std::size_t bytes) { return inner_->copy(to, from, bytes); }
void ForwardingBackend::copy_rows(const Matrix& from, const Matrix& to) { inner_->copy_rows(from, to); }
void ForwardingBackend::embed(const Weight& table, std::span<const TokenId> ids, const Matrix& out) {
  inner_->embed(table, ids, out);
}
void ForwardingBackend::linear(const Matrix& x, std::span<const LinearJob> jobs) { inner_->linear(x, jobs); }
void ForwardingBackend::rms_norm(const Matrix& x, const float* weight, float eps, const Matrix& out) {
  inner_->rms_norm(x, weight, eps, out);
}
void ForwardingBackend::head_norm(const Matrix& x, int heads, int dim, const float* weight, float eps) {
  inner_->head_norm(x, heads, dim, weight, eps);
}
void ForwardingBackend::rope(const Matrix& x, int heads, int dim, const RopeTable& table) {
  inner_->rope(x, heads, dim, table);
}
void ForwardingBackend::store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) {
  inner_->store_kv(keys, values, view, first_position);
}
void ForwardingBackend::attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                                  std::span<const CacheView> views, const Matrix& out) {
  inner_->attention(queries, shape, pieces, views, out);
}
void ForwardingBackend::silu_mul(const Matrix& gate, const Matrix& up, const Matrix& out) {
  inner_->silu_mul(gate, up, out);
}
void ForwardingBackend::sigmoid_mul(const Matrix& x, const Matrix& gate, const Matrix& out) {
  inner_->sigmoid_mul(x, gate, out);
}
void ForwardingBackend::delta_conv(const Matrix& x, const DeltaShape& shape, const DeltaWeights& weights,
                                   std::span<const Piece> pieces, std::span<const DeltaState> states,
                                   const Matrix& out) {
  inner_->delta_conv(x, shape, weights, pieces, states, out);
}
void ForwardingBackend::delta_rule(const Matrix& mixed, const Matrix& a, const Matrix& b, const DeltaShape& shape,
                                   const DeltaWeights& weights, std::span<const Piece> pieces,
                                   std::span<const DeltaState> states, const Matrix& out) {
  inner_->delta_rule(mixed, a, b, shape, weights, pieces, states, out);
}
void ForwardingBackend::delta(const Matrix& x, const Matrix& a, const Matrix& b, const DeltaShape& shape,
                              const DeltaWeights& weights, std::span<const Piece> pieces,
                              std::span<const DeltaState> states, const Matrix& mixed, const Matrix& out) {
  inner_->delta(x, a, b, shape, weights, pieces, states, mixed, out);
}
void ForwardingBackend::gated_norm(const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight,
                                   float eps, const Matrix& out) {
  inner_->gated_norm(x, gate, heads, dim, weight, eps, out);
}
void ForwardingBackend::gather(const Matrix& x, std::span<const int> rows, const Matrix& out) {
  inner_->gather(x, rows, out);
}

void ForwardingBackend::linear(const LinearInput& input, std::span<const LinearJob> jobs) {
  inner_->linear(input, jobs);
}
void ForwardingBackend::rotate_and_store(const Matrix& queries, const Matrix& keys, const Matrix& values,
                                         const AttentionShape& shape, const HeadNorms& norms, const RopeTable& table,
                                         std::span<const Piece> pieces, std::span<const CacheView> views) {
  inner_->rotate_and_store(queries, keys, values, shape, norms, table, pieces, views);
}
void ForwardingBackend::rope_table(std::span<const std::int32_t> positions, const float* inverse, int half,
                                   float magnitude, float* cosine, float* sine) {
  inner_->rope_table(positions, inverse, half, magnitude, cosine, sine);
}
Status ForwardingBackend::draw(const Matrix& logits, std::span<const DrawJob> jobs, std::span<Drawn> drawn) {
  return inner_->draw(logits, jobs, drawn);
}

std::vector<float> ForwardingBackend::read(const Matrix& matrix) {
  const auto width = static_cast<std::size_t>(matrix.width);
  std::vector<float> values(width * static_cast<std::size_t>(matrix.rows));
  for (int row = 0; row < matrix.rows; ++row) {
    const auto status =
        download(values.data() + static_cast<std::size_t>(row) * width, matrix.row(row), width * sizeof(float));
    CHECK(status.is_ok(), "a planted fault cannot read row {}: {}", row, status.message());
  }
  return values;
}

void ForwardingBackend::write(const std::vector<float>& values, const Matrix& matrix) {
  const auto width = static_cast<std::size_t>(matrix.width);
  for (int row = 0; row < matrix.rows; ++row) {
    const auto status =
        upload(matrix.row(row), values.data() + static_cast<std::size_t>(row) * width, width * sizeof(float));
    CHECK(status.is_ok(), "a planted fault cannot write row {}: {}", row, status.message());
  }
}

}  // namespace steadfast
