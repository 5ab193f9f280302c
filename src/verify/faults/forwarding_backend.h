// ForwardingBackend: a Backend that hands every call on to another one. Faults override what they falsify;
// one that falsifies a part of a composed op lets that op be made of its parts.
#pragma once

#include "backend/backend.h"

namespace steadfast {

class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::shared_ptr<Backend> inner) : inner_(std::move(inner)) {}

  std::string describe() const override { return inner_->describe(); }
  std::string target() const override { return inner_->target(); }
  Act act() const override { return inner_->act(); }
  Act prompt_act() const override { return inner_->prompt_act(); }
  Status check_model(const ModelShapes& shapes) const override { return inner_->check_model(shapes); }
  std::vector<std::pair<std::string, std::string>> kernels(const ModelShapes& shapes) const override {
    return inner_->kernels(shapes);
  }
  Status reserve_round(const RoundLimits& limits) override { return inner_->reserve_round(limits); }
  std::size_t round_bytes(const RoundLimits& limits) const override { return inner_->round_bytes(limits); }
  int usual_rows() const override { return inner_->usual_rows(); }
  std::size_t memory_bytes() const override { return inner_->memory_bytes(); }
  std::size_t memory_used() const override { return inner_->memory_used(); }
  int round_cost() const override { return inner_->round_cost(); }
  std::vector<OpTime> op_times() const override { return inner_->op_times(); }
  Status clear(void* device, std::size_t bytes) override { return inner_->clear(device, bytes); }
  Status finish() override { return inner_->finish(); }
  Result<std::unique_ptr<Weight>> pack(const AffineReader& reader, std::span<const int> row_map) override;
  Result<std::unique_ptr<Weight>> pack(const DenseReader& reader, std::span<const int> row_map) override;
  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) override;
  Status upload(void* device, const void* host, std::size_t bytes) override;
  Status download(void* host, const void* device, std::size_t bytes) override;
  Status copy(void* to, const void* from, std::size_t bytes) override;
  void copy_rows(const Matrix& from, const Matrix& to) override;
  void embed(const Weight& table, std::span<const TokenId> ids, const Matrix& out) override;
  void linear(const Matrix& x, std::span<const LinearJob> jobs) override;
  void rms_norm(const Matrix& x, const float* weight, float eps, const Matrix& out) override;
  void head_norm(const Matrix& x, int heads, int dim, const float* weight, float eps) override;
  void rope(const Matrix& x, int heads, int dim, const RopeTable& table) override;
  void store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) override;
  void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                 std::span<const CacheView> views, const Matrix& out) override;
  void silu_mul(const Matrix& gate, const Matrix& up, const Matrix& out) override;
  void sigmoid_mul(const Matrix& x, const Matrix& gate, const Matrix& out) override;
  void delta_conv(const Matrix& x, const DeltaShape& shape, const DeltaWeights& weights, std::span<const Piece> pieces,
                  std::span<const DeltaState> states, const Matrix& out) override;
  void delta_rule(const Matrix& mixed, const Matrix& a, const Matrix& b, const DeltaShape& shape,
                  const DeltaWeights& weights, std::span<const Piece> pieces, std::span<const DeltaState> states,
                  const Matrix& out) override;
  void delta(const Matrix& x, const Matrix& a, const Matrix& b, const DeltaShape& shape, const DeltaWeights& weights,
             std::span<const Piece> pieces, std::span<const DeltaState> states, const Matrix& mixed,
             const Matrix& out) override;
  DeltaStateBytes delta_state_bytes(const DeltaShape& shape) const override { return inner_->delta_state_bytes(shape); }
  void gated_norm(const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight, float eps,
                  const Matrix& out) override;
  void gather(const Matrix& x, std::span<const int> rows, const Matrix& out) override;
  void linear(const LinearInput& input, std::span<const LinearJob> jobs) override;
  void rotate_and_store(const Matrix& queries, const Matrix& keys, const Matrix& values, const AttentionShape& shape,
                        const HeadNorms& norms, const RopeTable& table, std::span<const Piece> pieces,
                        std::span<const CacheView> views) override;
  void rope_table(std::span<const std::int32_t> positions, const float* inverse, int half, float magnitude,
                  float* cosine, float* sine) override;
  Status draw(const Matrix& logits, std::span<const DrawJob> jobs, std::span<Drawn> drawn) override;

 protected:
  Backend& inner() { return *inner_; }
  // A linear made of its parts, each of them this backend's.
  void linear_in_parts(const LinearInput& input, std::span<const LinearJob> jobs) { Backend::linear(input, jobs); }
  // A matrix's rows on the host, and back; a device error here ends the program: it is a test's.
  std::vector<float> read(const Matrix& matrix);
  void write(const std::vector<float>& values, const Matrix& matrix);

 private:
  std::shared_ptr<Backend> inner_;
};

// One whose rotate_and_store is made of its parts, each of them this backend's: its store_kv sees every row.
class StoringBackend : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void rotate_and_store(const Matrix& queries, const Matrix& keys, const Matrix& values, const AttentionShape& shape,
                        const HeadNorms& norms, const RopeTable& table, std::span<const Piece> pieces,
                        std::span<const CacheView> views) override {
    Backend::rotate_and_store(queries, keys, values, shape, norms, table, pieces, views);
  }
};

}  // namespace steadfast
