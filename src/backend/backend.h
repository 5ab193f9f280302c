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
  Matrix(float* base, int row_count, int row_width) : data(base), rows(row_count), width(row_width), stride(row_width) {}
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
  bool fine = false;            // int8 activations in two digits (16 bits); for the head, where noise reaches the logits
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

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string describe() const = 0;  // "cpu, avx512, 2 threads"
  virtual Act act() const = 0;

  // row_map: feature r of the packed weight is row row_map[r] of the file (empty: the same).
  virtual Result<std::unique_ptr<Weight>> pack(const AffineReader& reader, std::span<const int> row_map) = 0;
  virtual Result<std::unique_ptr<Weight>> pack(const DenseReader& reader, std::span<const int> row_map) = 0;
  virtual Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) = 0;
  virtual Status upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual Status download(void* host, const void* device, std::size_t bytes) = 0;

  virtual void embed(const Weight& table, std::span<const TokenId> ids, const Matrix& out) = 0;
  virtual void linear(const Matrix& x, std::span<const LinearJob> jobs) = 0;
  virtual void rms_norm(const Matrix& x, const float* weight, float eps, const Matrix& out) = 0;
  virtual void head_norm(const Matrix& x, int heads, int dim, const float* weight, float eps) = 0;
  virtual void rope(const Matrix& x, int heads, int dim, const RopeTable& table) = 0;
  virtual void store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) = 0;
  virtual void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                         std::span<const CacheView> views, const Matrix& out) = 0;
  virtual void silu_mul(const Matrix& gate, const Matrix& up, const Matrix& out) = 0;
  virtual void gather(const Matrix& x, std::span<const int> rows, const Matrix& out) = 0;
};

}  // namespace steadfast
