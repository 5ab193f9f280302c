// Model: config and weights on a backend, and the one forward. Workspace: the activations of a round, allocated once.
#pragma once

#include <memory>

#include "cache/stream_state.h"
#include "model/config.h"
#include "model/weights.h"
#include "rows/round.h"

namespace steadfast {

ModelShapes shapes_of(const ModelConfig& config, DType kv_dtype = DType::kBF16);

RoundLimits round_limits(const ModelConfig& config, int rows, int logit_rows, std::size_t positions);

class Workspace {
 public:
  // logit_rows: rows of logits at a time. positions: of all streams' caches together; 0: one of the model's window.
  static Result<std::unique_ptr<Workspace>> create(Backend& backend, const ModelConfig& config, int max_rows,
                                                   int logit_rows = 16, std::size_t positions = 0);
  static std::size_t bytes(const ModelConfig& config, int max_rows, int logit_rows = 16);  // that create() allocates
  int max_rows() const { return max_rows_; }
  int logit_rows() const { return logit_rows_; }
  // After forward(): the normed hidden states of the round's logit rows, [logit_rows, hidden].
  Matrix final_rows() const { return final_; }

 private:
  friend class Model;
  std::vector<std::pair<float**, int>> parts(const ModelConfig& config);  // and floats a row of each
  int max_rows_ = 0, logit_rows_ = 0;
  std::unique_ptr<DeviceMemory> memory_;
  float *x_ = nullptr, *normed_ = nullptr, *query_ = nullptr, *key_ = nullptr, *value_ = nullptr, *mixed_ = nullptr;
  float *gate_ = nullptr, *up_ = nullptr, *cosine_ = nullptr, *sine_ = nullptr;
  float* query_gate_ = nullptr;  // models with output_gate
  float *delta_in_ = nullptr, *delta_mixed_ = nullptr, *delta_z_ = nullptr, *delta_out_ = nullptr;  // hybrids
  float *delta_a_ = nullptr, *delta_b_ = nullptr;
  float *logits_ = nullptr, *inverse_ = nullptr;
  Matrix final_;
};

class Model {
 public:
  Model(ModelConfig config, ModelWeights weights, Backend& backend)
      : config_(std::move(config)), weights_(std::move(weights)), backend_(&backend) {}

  const ModelConfig& config() const { return config_; }
  const ModelWeights& weights() const { return weights_; }
  Backend& backend() const { return *backend_; }
  CacheShape cache_shape(DType dtype) const;
  DeltaShape delta_shape() const;

  // Runs the round: stores every row's keys and values, leaves workspace.final_rows(). Rows at most max_rows, positions
  // inside each stream's window: both are the caller's duty.
  Status forward(const Round& round, Workspace& workspace) const;
  // Logits of final rows [first, first + rows), [rows, vocab] in the backend's memory, until the workspace is used
  // again.
  Result<Matrix> logits(const Workspace& workspace, int first, int rows) const;
  // The same for any number of rows, in memory of the host.
  Status head(const Workspace& workspace, int first, const Matrix& host) const;
  // Takes back all but the first `kept` rows since stream.record(): recurrent states become those after these rows, to
  // the bit as if the others had never run (attention's rows are simply overwritten later). Ends the recording.
  Status roll_back(StreamState& stream, int kept, Workspace& workspace) const;

 private:
  // A linear over the round's rows; where prompts have an arithmetic of their own, one for each run of rows of a role.
  void linear(const Round& round, const LinearInput& input, std::span<const LinearJob> jobs) const;
  void linear(const Round& round, const LinearInput& input, const LinearJob& job) const {
    linear(round, input, std::span(&job, 1));
  }
  void attention_layer(const Round& round, int layer, int index, Workspace& w) const;
  void delta_layer(const Round& round, int layer, int index, Workspace& w) const;
  void mlp(const Round& round, int layer, Workspace& w) const;

  ModelConfig config_;
  ModelWeights weights_;
  Backend* backend_;
};

}  // namespace steadfast
