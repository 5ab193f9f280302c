// The CPU kernels that exist once for each instruction set, as a table of functions chosen at start-up.
// Every table gives the same bits (tests/law): kernels_impl.h is compiled against each struct of simd.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace steadfast::cpu {

constexpr int kLanes = 16;      // features in a tile, positions in a key block
constexpr int kChunk = 32;      // consecutive k packed together
constexpr int kSpan = 512;      // positions in an attention span; a multiple of kLanes
constexpr int kMaxQueries = 4;  // queries that an attention call takes together

enum class ScaleType : std::uint8_t { kF32, kF16, kBF16 };
enum class KvType : std::uint8_t { kF32, kBF16, kF8 };

// A quantised linear's weight: w = scale * code + bias for each group of consecutive k (backend/cpu/packed.h packs it).
// codes: [tiles of 16 features][in / 32][bytes of a chunk]; scales, biases: [tiles][in / group][16].
struct AffineWeight {
  int out = 0, in = 0, bits = 0, group = 0;
  bool symmetric = false;  // every bias is -2^(bits-1) * scale: the zero point is subtracted in integers, exactly
  ScaleType scale_type = ScaleType::kF32;
  const std::uint8_t* codes = nullptr;
  const void* scales = nullptr;
  const void* biases = nullptr;  // nullptr where symmetric
};

// An unquantised weight: [tiles of 16 features][in][16] elements.
struct DenseWeight {
  int out = 0, in = 0;
  ScaleType type = ScaleType::kF32;
  const void* values = nullptr;
};

// Rows quantised for groups of one size: x = scale * code. A code is one int8 digit, or two (fine): 256 * high + low.
struct QuantRows {
  const std::int8_t* codes = nullptr;  // [rows][in], the high digits
  const std::int8_t* low = nullptr;    // [rows][in], the low digits; nullptr: one digit
  const float* scales = nullptr;       // [rows][in / group]
  const std::int32_t* sums = nullptr;  // [rows][in / group]: sum of the codes
};

// Where a linear's result goes: y[row][feature] = (add ? add : 0) + (W x) + (bias ? bias : 0), in this order:
// the product first, + bias, + add. Strides are in floats.
struct LinearOutput {
  float* y = nullptr;
  std::ptrdiff_t stride = 0;
  const float* bias = nullptr;
  const float* add = nullptr;  // same stride as y; may be y itself
};

// Keys and values of one layer and one key-value head, for the rows of one stream. Blocks of 16 positions:
// keys [block][dim][16], values [block][16][dim]. Block b lies at element offset block_offset(b).
struct KvView {
  const void* keys = nullptr;
  const void* values = nullptr;
  const std::int32_t* pages = nullptr;  // page table
  int page_shift = 0;                   // log2 of the positions a page
  std::ptrdiff_t page_stride = 0;       // elements between pages
  std::ptrdiff_t head_offset = 0;       // elements from a page's start to this head
  int dim = 0;
  KvType type = KvType::kF32;
  const float* key_scales = nullptr;  // fp8: one a position, powers of two
  const float* value_scales = nullptr;
  std::ptrdiff_t scale_page_stride = 0, scale_head_offset = 0;
};

struct AttentionCall {
  KvView kv;
  int queries = 0;                  // 1..kMaxQueries, all positions in one block of 16
  const float* query[kMaxQueries];  // [dim]
  float* out[kMaxQueries];          // [dim]
  int position[kMaxQueries];
  float scale = 1;
  float* scratch = nullptr;  // attention_scratch(dim) floats
};

constexpr int attention_scratch(int dim) { return kMaxQueries * (kSpan + 2 * dim); }

constexpr int kMaxValueDim = 512;  // of a recurrent head

// One row of one recurrent head (Gated DeltaNet). query and key are normed; state: [key_dim][value_dim rounded up to
// 16].
struct DeltaStep {
  const float* query = nullptr;
  const float* key = nullptr;
  const float* value = nullptr;
  float* out = nullptr;
  float decay = 1, beta = 1;
};

struct Kernels {
  const char* name;
  // codes, scales, sums of `in` floats in groups: scale = max|x| / limit, code = round(x * (limit / max|x|)), limit
  // 127. With low: limit 127 * 256, code = 256 * codes + low, low in [-128, 127].
  void (*quantise)(const float* x, int in, int group, std::int8_t* codes, std::int8_t* low, float* scales,
                   std::int32_t* sums);
  // Tiles [first_tile, last_tile) for rows [first_row, last_row).
  void (*linear_int8)(const AffineWeight&, const QuantRows&, const LinearOutput&, int first_tile, int last_tile,
                      int first_row, int last_row);
  // x: [rows][in] floats; round_bf16: each expanded weight is rounded to bf16 first.
  void (*linear_f32)(const AffineWeight&, const float* x, bool round_bf16, const LinearOutput&, int first_tile,
                     int last_tile, int first_row, int last_row);
  void (*linear_dense)(const DenseWeight&, const float* x, bool round_bf16, const LinearOutput&, int first_tile,
                       int last_tile, int first_row, int last_row);
  // y = x * (1 / sqrt(mean(x^2) + eps)) * w; squares in 16 lane chains, then the fixed tree.
  void (*rms_norm)(const float* x, const float* w, int n, float eps, float* y);
  void (*silu_mul)(const float* gate, const float* up, int n, float* y);  // y = gate / (1 + e^-gate) * up
  void (*attention)(const AttentionCall&);
  void (*round_bf16)(const float* x, int n, float* y);
  void (*sigmoid_mul)(const float* x, const float* gate, int n, float* y);  // y = x / (1 + e^-gate)
  void (*conv_silu)(const float* const* x, const float* w, int taps, int channels, float* y);
  void (*l2_norm)(float* x, int n, float scale);
  void (*delta_step)(const DeltaStep&, int key_dim, int value_dim, float* state);
};

const Kernels& scalar_kernels();
const Kernels& avx2_kernels();    // needs AVX2, FMA, F16C
const Kernels& avx512_kernels();  // needs AVX-512 F, BW, VL, DQ, VNNI besides
bool cpu_has_avx2();
bool cpu_has_avx512();
// The widest that this machine has, or the one named ("scalar", "avx2", "avx512"); nullptr: unknown or not there.
const Kernels* select_kernels(const char* name);

}  // namespace steadfast::cpu
