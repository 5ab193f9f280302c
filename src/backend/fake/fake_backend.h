// A backend for tests of streams, pages, prefixes and plans. Tokens follow from a hash of all that a stream was fed,
// and everything that a stream holds is checked when it is read: each position of its cache holds (token, position,
// hash of the history), and so do its recurrent states. What is wrong is counted, with a sentence for the first ones.
// The ordinary Model, StreamState, PagePool, PrefixIndex and Engine run on it; 100,000s of rows a second.
//
// A row of activations carries a Mark in its first floats, from embed to the head; ops hand it on. So every width of
// the model must be at least kMarkFloats; heads must have at least 16 dims, whose elements hold a byte each.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "backend/backend.h"
#include "cache/stream_state.h"

namespace steadfast::fake {

struct Mark {
  std::uint32_t magic = 0;
  TokenId token = 0;
  std::uint64_t hash = 0;     // of the layers so far
  std::uint64_t history = 0;  // the chain that recurrent layers hold, if there were any
  std::int32_t layers = 0;    // that the row has passed
  std::int32_t recurrent = 0;
  float cosine = 0, sine = 0;  // of the row's rotation, first pair
};
constexpr int kMarkFloats = static_cast<int>(sizeof(Mark) / sizeof(float));

// Faults and live memory; outlives the backend's memories.
class Ledger {
 public:
  void fault(std::string what);
  std::uint64_t faults() const { return faults_; }
  std::vector<std::string> sentences() const;  // of the first faults
  std::int64_t live_bytes() const { return live_bytes_; }

 private:
  friend class Memory;
  friend class FakeBackend;
  struct Fed {
    int next = 0, last = 0;  // the position that follows, and the first one of the last piece
    bool recorded = false;   // the last piece may be rolled back
  };
  mutable std::mutex mutex_;
  std::vector<std::string> sentences_;
  std::atomic<std::uint64_t> faults_{0};
  std::atomic<std::int64_t> live_bytes_{0};
  std::unordered_map<const void*, Fed> fed_;  // by a stream's block of states: one a stream
};

class FakeBackend : public Backend {
 public:
  FakeBackend() : ledger_(std::make_shared<Ledger>()) {}
  std::shared_ptr<Ledger> ledger() const { return ledger_; }
  // Pages of this pool must not be written while their count is above one. Set while no round runs.
  void watch(const PagePool* pool) { pool_ = pool; }
  // Called with the pieces of each round, on the thread that runs it. Set while no round runs.
  void on_round(std::function<void(std::span<const Piece>)> seen) { on_round_ = std::move(seen); }

  std::string describe() const override { return "fake"; }
  std::string target() const override { return "fake"; }
  Act act() const override { return Act::kF32; }
  Result<std::unique_ptr<Weight>> pack(const AffineReader& reader, std::span<const int> row_map) override;
  Result<std::unique_ptr<Weight>> pack(const DenseReader& reader, std::span<const int> row_map) override;
  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) override;
  Status upload(void* device, const void* host, std::size_t bytes) override;
  Status download(void* host, const void* device, std::size_t bytes) override;
  Status copy(void* to, const void* from, std::size_t bytes) override;
  void copy_rows(const Matrix& from, const Matrix& to) override;

  void embed(const Weight& table, std::span<const TokenId> ids, const Matrix& out) override;
  using Backend::linear;
  void linear(const Matrix& x, std::span<const LinearJob> jobs) override;
  void rms_norm(const Matrix& x, const float* weight, float eps, const Matrix& out) override;
  void head_norm(const Matrix&, int, int, const float*, float) override {}
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
  Mark read(const float* row);
  void hand_on(const Matrix& from, const Matrix& to);
  void begin_round(std::span<const Piece> pieces);
  void check_rotation(const Mark& mark, int position);

  std::shared_ptr<Ledger> ledger_;
  const PagePool* pool_ = nullptr;
  std::function<void(std::span<const Piece>)> on_round_;
};

// Writes a mark into a row's first floats.
void write(float* row, const Mark& mark);

}  // namespace steadfast::fake
