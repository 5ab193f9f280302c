// Backend: the device that holds weights and runs ops (cpu now; cuda beside it). ops/*.h are the doors to it: they
// state shapes and arithmetic and check them; the model calls ops, never a backend's own functions.
// Pointers in Matrix and CacheView are memory of this backend. Ops are called from one thread and finish in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/machine.h"
#include "base/status.h"
#include "cache/cache_view.h"
#include "quant/affine.h"
#include "quant/dense.h"
#include "rows/draw.h"
#include "rows/round.h"

namespace steadfast {

// How linears treat activations (design.md section 2).
enum class Act : std::uint8_t { kF32, kBF16, kInt8 };
const char* to_string(Act act);

// float32 rows: row r starts at data + r * stride.
struct Matrix {
  float* data = nullptr;
  int rows = 0;
  int width = 0;
  std::ptrdiff_t stride = 0;

  Matrix() = default;
  Matrix(float* base, int row_count, int row_width)
      : data(base), rows(row_count), width(row_width), stride(row_width) {}
  Matrix(float* base, int row_count, int row_width, std::ptrdiff_t row_stride)
      : data(base), rows(row_count), width(row_width), stride(row_stride) {}
  float* row(int r) const { return data + r * stride; }
  Matrix columns(int first, int count) const { return {data + first, rows, count, stride}; }
  Matrix part(int first, int count) const { return {data == nullptr ? data : row(first), count, width, stride}; }
};

// A matrix of weights as the backend keeps it: out features of in inputs.
class Weight {
 public:
  virtual ~Weight() = default;
  int out() const { return out_; }
  int in() const { return in_; }
  std::size_t bytes() const { return bytes_; }
  const std::string& format() const { return format_; }  // for `info`: "affine 4 bits, groups of 32, f16 scales"

 protected:
  int out_ = 0, in_ = 0;
  std::size_t bytes_ = 0;
  std::string format_;
};

// Memory on the device, zeroed, freed with its owner.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void* data() = 0;
  virtual std::size_t bytes() const = 0;
};

// One product of a linear op: out = x W^T, + bias, + add (residual), each where given.
struct LinearJob {
  const Weight* weight = nullptr;
  Matrix out;
  const float* bias = nullptr;  // device memory, [weight->out()]
  const float* add = nullptr;   // same rows and stride as out; may be out's own data
  bool fine = false;    // int8 activations in two digits (16 bits); for the head, where noise reaches the logits
  bool prompt = false;  // rows of prompts: prompt_act() instead of act(); the same for all jobs of a call
};

// What a linear op reads: rows as they lie, or made from rows on the way in (ops/linear.h). kSiluMul uses up its two
// operands: a backend need not write them where the linear before has made them for this one alone.
struct LinearInput {
  enum class Kind : std::uint8_t { kPlain, kRmsNorm, kSiluMul, kSigmoidMul, kGatedNorm };
  Kind kind = Kind::kPlain;
  Matrix x;                       // kSiluMul: the gate
  Matrix other;                   // kSiluMul: what is multiplied; kSigmoidMul, kGatedNorm: the gate
  const float* weight = nullptr;  // the norms' weight, device memory
  float eps = 0;
  int heads = 0, dim = 0;  // kGatedNorm
  Matrix made;             // where a backend may put the rows that it makes; may be x
};

// Norms of queries' and keys' heads before their rotation; nullptr: none.
struct HeadNorms {
  const float* query = nullptr;  // [dim], device memory
  const float* key = nullptr;
  float eps = 0;
};

// A draw from one row of logits (rows/draw.h); pointers live until draw() returns.
struct DrawJob {
  const SamplingParams* sampling = nullptr;
  const History* history = nullptr;
  std::int64_t position = 0;  // of the drawn token
  int vocab = 0;              // ids behind it are padding
  int top_logprobs = -1;      // -1: none
};

struct Drawn {
  TokenId id = 0;
  std::optional<TokenLogprob> logprob;
};

// Rotary positions: cos and sin for each row of a round, [rows][dims / 2].
struct RopeTable {
  const float* cosine = nullptr;
  const float* sine = nullptr;
  int dims = 0;  // rotated dims, even
};

struct AttentionShape {
  int heads = 0, kv_heads = 0, dim = 0;
  float scale = 1;
};

// A Gated DeltaNet layer's shape. Rows of its convolution hold [queries | keys | values].
struct DeltaShape {
  int key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0, taps = 0;
  bool tiled = false;  // value head h reads key head h mod key_heads (GGUF), else h / (value_heads / key_heads)

  int key_width() const { return key_heads * key_dim; }
  int value_width() const { return value_heads * value_dim; }
  int conv_width() const { return 2 * key_width() + value_width(); }
  int padded_value_dim() const { return (value_dim + 15) / 16 * 16; }
  std::size_t conv_floats() const {
    return static_cast<std::size_t>(taps - 1) * static_cast<std::size_t>(conv_width());
  }
  std::size_t state_floats() const {
    return static_cast<std::size_t>(value_heads) * static_cast<std::size_t>(key_dim) *
           static_cast<std::size_t>(padded_value_dim());
  }
};

// One stream's recurrent state of one layer, device memory: rows before the convolution, and S with what belongs to it.
// The layout is the backend's, and so is its size; memory that is all zeros is the state before the first position.
struct DeltaState {
  float* conv = nullptr;   // CPU: the last rows, [taps - 1][conv_width], oldest first
  float* state = nullptr;  // CPU: [value_heads][key_dim][padded_value_dim]
};
struct DeltaStateBytes {
  std::size_t conv = 0, state = 0;
};

// A layer's weights of the recurrence, device memory.
struct DeltaWeights {
  const float* conv = nullptr;     // [taps][conv_width]
  const float* a = nullptr;        // [value_heads]: -exp(A_log)
  const float* dt_bias = nullptr;  // [value_heads]
};

// What of a model decides whether a backend has kernels for it, and what a round of it needs.
struct ModelShapes {
  AttentionShape attention;
  bool recurrent = false;
  DeltaShape delta;  // recurrent
  DType kv_dtype = DType::kBF16;
};

// The most that any round holds; backends plan their scratch by it.
struct RoundLimits {
  int rows = 0, logit_rows = 0;
  int widest = 0, vocab = 0;  // inputs of a linear; logits of a row
  std::size_t positions = 0;  // of all streams' caches together
  ModelShapes shapes;
};

// Where the time of rounds went, of a backend that was asked to measure it.
struct OpTime {
  std::string name;
  double milliseconds = 0;
  std::uint64_t launches = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string describe() const = 0;  // "cpu, avx512, 2 threads"
  // The target of the row law, for receipts: programs with equal targets give equal bits. "cpu", "cuda sm_90a".
  virtual std::string target() const = 0;
  virtual Act act() const = 0;
  virtual Act prompt_act() const { return act(); }  // of linears over rows of prompts
  // A sentence where the backend lacks a kernel for such a model.
  virtual Status check_model(const ModelShapes&) const { return Status::ok(); }
  // Which kernel each kind of op takes, for `info`.
  virtual std::vector<std::pair<std::string, std::string>> kernels(const ModelShapes&) const { return {}; }
  // Takes the memory that rounds within these limits (and all earlier ones) need; no round takes more.
  virtual Status reserve_round(const RoundLimits&) { return Status::ok(); }
  virtual std::size_t round_bytes(const RoundLimits&) const { return 0; }  // that reserve_round() takes, for plans
  virtual std::vector<OpTime> op_times() const { return {}; }
  // Bytes that weights, caches and workspaces may take in all (engine/memory_plan.h).
  virtual std::size_t memory_bytes() const { return machine_memory(); }
  // Bytes of the device's memory in use now: a card's by all programs, the machine's by this one.
  virtual std::size_t memory_used() const { return process_memory(); }
  // What a round costs beside its rows, in rows of a long prompt (schedule/plan.h): reading the weights, mostly.
  virtual int round_cost() const { return 6; }
  // Rows of a round where nobody asks for another number.
  virtual int usual_rows() const { return 512; }

  // row_map: feature r of the packed weight is row row_map[r] of the file; may leave rows out. Empty: every row.
  virtual Result<std::unique_ptr<Weight>> pack(const AffineReader& reader, std::span<const int> row_map) = 0;
  virtual Result<std::unique_ptr<Weight>> pack(const DenseReader& reader, std::span<const int> row_map) = 0;
  virtual Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) = 0;
  virtual Status upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual Status download(void* host, const void* device, std::size_t bytes) = 0;
  virtual Status copy(void* to, const void* from, std::size_t bytes) = 0;  // both device memory
  // Zeros; a backend with a way of its own to fill memory overrides it.
  virtual Status clear(void* device, std::size_t bytes) {
    auto zeros = allocate(bytes);
    return zeros ? copy(device, (*zeros)->data(), bytes) : zeros.status();
  }
  // Sends what ops left to do and reports what failed in them; a backend that computes at once has nothing to say.
  virtual Status finish() { return Status::ok(); }
  virtual void copy_rows(const Matrix& from, const Matrix& to) = 0;  // same shape

  virtual void embed(const Weight& table, std::span<const TokenId> ids, const Matrix& out) = 0;
  virtual void linear(const Matrix& x, std::span<const LinearJob> jobs) = 0;
  virtual void rms_norm(const Matrix& x, const float* weight, float eps, const Matrix& out) = 0;
  virtual void head_norm(const Matrix& x, int heads, int dim, const float* weight, float eps) = 0;
  virtual void rope(const Matrix& x, int heads, int dim, const RopeTable& table) = 0;
  virtual void store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) = 0;
  virtual void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                         std::span<const CacheView> views, const Matrix& out) = 0;
  virtual void silu_mul(const Matrix& gate, const Matrix& up, const Matrix& out) = 0;
  virtual void sigmoid_mul(const Matrix& x, const Matrix& gate, const Matrix& out) = 0;
  // The halves of delta(), for backends that keep them apart.
  virtual void delta_conv(const Matrix&, const DeltaShape&, const DeltaWeights&, std::span<const Piece>,
                          std::span<const DeltaState>, const Matrix&) {
    CHECK(false, "delta_conv: {} computes delta in one", describe());
  }
  virtual void delta_rule(const Matrix&, const Matrix&, const Matrix&, const DeltaShape&, const DeltaWeights&,
                          std::span<const Piece>, std::span<const DeltaState>, const Matrix&) {
    CHECK(false, "delta_rule: {} computes delta in one", describe());
  }
  // delta_conv, then delta_rule, in one (ops/delta.h). mixed: room for the rows between them.
  virtual void delta(const Matrix& x, const Matrix& a, const Matrix& b, const DeltaShape& shape,
                     const DeltaWeights& weights, std::span<const Piece> pieces, std::span<const DeltaState> states,
                     const Matrix& mixed, const Matrix& out) {
    delta_conv(x, shape, weights, pieces, states, mixed);
    delta_rule(mixed, a, b, shape, weights, pieces, states, out);
  }
  // Bytes of one stream's state of one layer.
  virtual DeltaStateBytes delta_state_bytes(const DeltaShape& shape) const {
    return {shape.conv_floats() * sizeof(float), shape.state_floats() * sizeof(float)};
  }
  virtual void gated_norm(const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight, float eps,
                          const Matrix& out) = 0;
  virtual void gather(const Matrix& x, std::span<const int> rows, const Matrix& out) = 0;

  // Several ops in one. Here: one after the other, in memory that the host can reach (backend.cc).
  virtual void linear(const LinearInput& input, std::span<const LinearJob> jobs);
  virtual void rotate_and_store(const Matrix& queries, const Matrix& keys, const Matrix& values,
                                const AttentionShape& shape, const HeadNorms& norms, const RopeTable& table,
                                std::span<const Piece> pieces, std::span<const CacheView> views);
  // cosine, sine [positions][half] of position * inverse[i], times magnitude (model/rope.h). inverse: device memory.
  virtual void rope_table(std::span<const std::int32_t> positions, const float* inverse, int half, float magnitude,
                          float* cosine, float* sine);
  // One id for each row of logits, which it may change. Waits for all that was asked for before.
  virtual Status draw(const Matrix& logits, std::span<const DrawJob> jobs, std::span<Drawn> drawn);

 private:
  DrawScratch draw_scratch_;
  std::vector<float> raw_logits_;
};

}  // namespace steadfast
