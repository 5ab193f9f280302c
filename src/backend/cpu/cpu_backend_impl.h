// Declaration of the CPU backend; its ops are defined one file an op (cpu/linear.cc, cpu/attention.cc, ...).
#pragma once

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/packed.h"
#include "backend/cpu/thread_team.h"

namespace steadfast::cpu {

class CpuBackend : public Backend {
 public:
  CpuBackend(const Kernels& kernels, int threads, Act act, Act prompt_act)
      : kernels_(&kernels), team_(threads), act_(act), prompt_act_(prompt_act) {}

  std::string describe() const override;
  std::string target() const override { return "cpu"; }
  Act act() const override { return act_; }
  Act prompt_act() const override { return prompt_act_; }
  Result<std::unique_ptr<Weight>> pack(const AffineReader& reader, std::span<const int> row_map) override {
    return PackedWeight::from(reader, row_map, team_);
  }
  Result<std::unique_ptr<Weight>> pack(const DenseReader& reader, std::span<const int> row_map) override {
    return PackedWeight::from(reader, row_map, team_);
  }
  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) override;
  Status upload(void* device, const void* host, std::size_t bytes) override;
  Status download(void* host, const void* device, std::size_t bytes) override;
  Status copy(void* to, const void* from, std::size_t bytes) override;
  Status clear(void* device, std::size_t bytes) override;
  void copy_rows(const Matrix& from, const Matrix& to) override;

  void embed(const Weight& table, std::span<const TokenId> ids, const Matrix& out) override;
  using Backend::linear;
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
  void gated_norm(const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight, float eps,
                  const Matrix& out) override;
  void gather(const Matrix& x, std::span<const int> rows, const Matrix& out) override;

 private:
  // x quantised once for each group size that the jobs need, or rounded to bf16, or as it is.
  struct Quantised {
    int group = 0;
    bool fine = false;
    std::vector<std::int8_t> codes, low;
    std::vector<float> scales;
    std::vector<std::int32_t> sums;
  };
  const Quantised& quantised(int group, bool fine) const;
  void prepare(const Matrix& x, std::span<const LinearJob> jobs, Act act);

  const Kernels* kernels_;
  ThreadTeam team_;
  Act act_, prompt_act_;
  std::vector<Quantised> quantised_;
  std::vector<float> plain_;                 // rows of x side by side, for the f32 kernels
  std::vector<std::vector<float>> scratch_;  // one a thread, for attention
};

}  // namespace steadfast::cpu
