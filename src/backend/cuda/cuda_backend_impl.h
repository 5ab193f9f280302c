// Declaration of the CUDA backend; its memory is defined in cuda_memory.cc, its ops in cuda_backend.cc.
#pragma once

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/draw.h"
#include "backend/cuda/linear_chain.h"
#include "backend/cuda/recorder.h"
#include "backend/cuda/weight.h"

namespace steadfast::cuda {

class CudaBackend : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> create(const CudaOptions& options);
  ~CudaBackend() override;

  // For ops to append to, and for the contract, which forces schedules: linears that were held back come first.
  Recorder& recorder() {
    chains_.flush(*recorder_);
    return *recorder_;
  }

  std::string describe() const override;
  std::string target() const override;
  Act act() const override { return Act::kBF16; }
  Act prompt_act() const override { return options_.prompt_act; }
  std::size_t memory_bytes() const override;
  std::size_t memory_used() const override;
  int round_cost() const override { return 64; }
  int usual_rows() const override { return 2048; }
  std::size_t round_bytes(const RoundLimits& limits) const override;
  Status check_model(const ModelShapes& shapes) const override;
  Status reserve_round(const RoundLimits& limits) override;
  std::vector<OpTime> op_times() const override;
  std::vector<std::pair<std::string, std::string>> kernels(const ModelShapes& shapes) const override;

  Result<std::unique_ptr<Weight>> pack(const AffineReader& reader, std::span<const int> row_map) override;
  Result<std::unique_ptr<Weight>> pack(const DenseReader& reader, std::span<const int> row_map) override;
  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) override;
  Status upload(void* device, const void* host, std::size_t bytes) override;
  Status download(void* host, const void* device, std::size_t bytes) override;
  Status copy(void* to, const void* from, std::size_t bytes) override;
  Status finish() override;

  void copy_rows(const Matrix& from, const Matrix& to) override;
  void embed(const Weight& table, std::span<const TokenId> ids, const Matrix& out) override;
  void linear(const Matrix& x, std::span<const LinearJob> jobs) override;
  void linear(const steadfast::LinearInput& input, std::span<const LinearJob> jobs) override;
  void rms_norm(const Matrix& x, const float* weight, float eps, const Matrix& out) override;
  void head_norm(const Matrix& x, int heads, int dim, const float* weight, float eps) override;
  void rope(const Matrix& x, int heads, int dim, const RopeTable& table) override;
  void rope_table(std::span<const std::int32_t> positions, const float* inverse, int half, float magnitude,
                  float* cosine, float* sine) override;
  void store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) override;
  void rotate_and_store(const Matrix& queries, const Matrix& keys, const Matrix& values, const AttentionShape& shape,
                        const HeadNorms& norms, const RopeTable& table, std::span<const Piece> pieces,
                        std::span<const CacheView> views) override;
  void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                 std::span<const CacheView> views, const Matrix& out) override;
  void silu_mul(const Matrix& gate, const Matrix& up, const Matrix& out) override;
  void sigmoid_mul(const Matrix& x, const Matrix& gate, const Matrix& out) override;
  void delta(const Matrix& x, const Matrix& a, const Matrix& b, const DeltaShape& shape, const DeltaWeights& weights,
             std::span<const Piece> pieces, std::span<const DeltaState> states, const Matrix& mixed,
             const Matrix& out) override;
  DeltaStateBytes delta_state_bytes(const DeltaShape& shape) const override;
  void gated_norm(const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight, float eps,
                  const Matrix& out) override;
  void gather(const Matrix& x, std::span<const int> rows, const Matrix& out) override;
  Status draw(const Matrix& logits, std::span<const DrawJob> jobs, std::span<Drawn> drawn) override;

 private:
  CudaBackend() = default;
  void append_linear(const cuda::LinearInput& input, std::span<const LinearJob> jobs);
  // The device of this thread, and whether the card still works.
  Status ready() const;
  // Clears an error that the card survives; remembers one that it does not.
  Status note(Status status);
  // Sends what was appended, then copies in pieces of the staging memory and waits.
  Status staged_copy(void* host, void* device, std::size_t bytes, bool up);

  CudaOptions options_;
  std::string name_;  // "NVIDIA H200"
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<WeightLoader> loader_;
  std::byte* staging_ = nullptr;  // pinned
  RoundLimits limits_;
  std::unique_ptr<DeviceMemory> query_rows_;  // bf16 queries of a round, from rotate_and_store to attention
  std::unique_ptr<DeviceMemory> results_;     // DrawResult of each row of logits
  LinearChains chains_;
  std::unique_ptr<DeviceMemory> chain_memory_;  // chains_' rows on the way
  const float* stored_queries_ = nullptr;       // whose rows query_rows_ holds
  Status failed_;
};

}  // namespace steadfast::cuda
