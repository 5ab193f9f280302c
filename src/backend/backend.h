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

#include "base/status.h"
#include "cache/cache_view.h"
#include "quant/affine.h"
#include "quant/dense.h"
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
  bool fine = false;  // int8 activations in two digits (16 bits); for the head, where noise reaches the logits
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

// One stream's recurrent state of one layer, device memory: the last taps - 1 rows before the convolution, and S.
struct DeltaState {
  float* conv = nullptr;   // [taps - 1][conv_width], oldest first
  float* state = nullptr;  // [value_heads][key_dim][padded_value_dim]
};

// A layer's weights of the recurrence, device memory.
struct DeltaWeights {
  const float* conv = nullptr;     // [taps][conv_width]
  const float* a = nullptr;        // [value_heads]: -exp(A_log)
  const float* dt_bias = nullptr;  // [value_heads]
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string describe() const = 0;  // "cpu, avx512, 2 threads"
  virtual Act act() const = 0;

  // row_map: feature r of the packed weight is row row_map[r] of the file; may leave rows out. Empty: every row.
  virtual Result<std::unique_ptr<Weight>> pack(const AffineReader& reader, std::span<const int> row_map) = 0;
  virtual Result<std::unique_ptr<Weight>> pack(const DenseReader& reader, std::span<const int> row_map) = 0;
  virtual Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) = 0;
  virtual Status upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual Status download(void* host, const void* device, std::size_t bytes) = 0;
  virtual Status copy(void* to, const void* from, std::size_t bytes) = 0;  // both device memory
  virtual void copy_rows(const Matrix& from, const Matrix& to) = 0;        // same shape

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
  virtual void delta_conv(const Matrix& x, const DeltaShape& shape, const DeltaWeights& weights,
                          std::span<const Piece> pieces, std::span<const DeltaState> states, const Matrix& out) = 0;
  virtual void delta_rule(const Matrix& mixed, const Matrix& a, const Matrix& b, const DeltaShape& shape,
                          const DeltaWeights& weights, std::span<const Piece> pieces,
                          std::span<const DeltaState> states, const Matrix& out) = 0;
  virtual void gated_norm(const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight, float eps,
                          const Matrix& out) = 0;
  virtual void gather(const Matrix& x, std::span<const int> rows, const Matrix& out) = 0;
};

}  // namespace steadfast
