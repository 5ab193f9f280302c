// One group of lanes a vector (a head of a row), 8 dims a lane; vectors of a row: queries, keys, values.
#include <cuda_fp8.h>

#include <bit>

#include "backend/cuda/device/attention_rows.h"
#include "backend/cuda/device/kv_layout.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/store_kv.h"

namespace steadfast::cuda {
namespace {

constexpr int kThreads = 256;
constexpr float kLargestValue = 0x1.FEp127f;  // of bf16

struct StoreTask {
  const float *queries, *keys, *values;
  std::ptrdiff_t query_stride, key_stride, value_stride;
  float* queries_in_place;
  __nv_bfloat16* queries_out;
  const float *query_norm, *key_norm, *cosine, *sine;
  float eps;
  int rows, heads, kv_heads, dim, rope_dims, vectors, count;  // vectors: of a row
  const KvPiece* pieces;
  const std::int32_t* tables;
};

// x: this lane's dims of a head of dim dims; lanes behind the last dim hold zeros.
template <int kLanes>
__device__ __forceinline__ void norm(float (&x)[8], const float* weight, int first, int dim, float eps) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum = __fmaf_rn(x[i], x[i], sum);
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
  const float inverse = __frcp_rn(__fsqrt_rn(__fadd_rn(__fdiv_rn(sum, static_cast<float>(dim)), eps)));
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (first < dim) x[i] = __fmul_rn(__fmul_rn(x[i], inverse), weight[first + i]);
}

// head: this vector's dims in shared memory, for the partners of a rotation.
__device__ __forceinline__ void rotate(float (&x)[8], float* head, int first, int dims, const float* cosine,
                                       const float* sine) {
#pragma unroll
  for (int i = 0; i < 8; ++i) head[first + i] = x[i];
  __syncwarp();
  const int half = dims / 2;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int d = first + i;
    if (d < half) x[i] = __fsub_rn(__fmul_rn(x[i], cosine[d]), __fmul_rn(head[d + half], sine[d]));
    if (d >= half && d < dims)
      x[i] = __fadd_rn(__fmul_rn(x[i], cosine[d - half]), __fmul_rn(head[d - half], sine[d - half]));
  }
  __syncwarp();
}

__device__ __forceinline__ uint4 pack8(const float (&x)[8]) {
  return {pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]), pack_bf16(x[6], x[7])};
}

// The least power of two that keeps `largest` at or below 448 = 1.75 * 2^8; 1 for zero.
__device__ __forceinline__ float fp8_scale(float largest) {
  if (largest == 0.0f) return 1.0f;
  const std::uint32_t bits = __float_as_uint(largest);
  const int exponent = static_cast<int>(bits >> 23) - 127 - 8 + ((bits & 0x7FFFFFu) > 0x600000u ? 1 : 0);
  return __uint_as_float(static_cast<std::uint32_t>(min(max(exponent, -100), 100) + 127) << 23);
}

__device__ __forceinline__ std::uint32_t e4m3(float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }

// Two neighbouring lanes hold a piece of 16 dims: bytes 2u, 2u + 1 are dims u, u + 8.
template <int kLanes>
__device__ __forceinline__ uint4 pack_fp8(const float (&x)[8], float& scale) {
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(x[i]));
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, distance));
  scale = fp8_scale(largest);
  const float inverse = __frcp_rn(scale);
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t mine = e4m3(__fmul_rn(x[2 * i], inverse)) | e4m3(__fmul_rn(x[2 * i + 1], inverse)) << 16;
    words[i] = mine | __shfl_xor_sync(0xFFFFFFFFu, mine, 1) << 8;  // right in the even lane
  }
  return {words[0], words[1], words[2], words[3]};
}

template <int kLanes, int kBytes>
__device__ __forceinline__ void store(const StoreTask& task, const float (&x)[8], int row, int head, bool is_key,
                                      int first, bool live) {
  float scale = 1.0f;
  const uint4 packed = kBytes == 128 ? pack8(x) : pack_fp8<kLanes>(x, scale);
  if (!live || (kBytes == 64 && first % 16 != 0)) return;
  const KvPiece& piece = task.pieces[piece_of_row(task.pieces, task.count, row)];
  const int position = piece.first_position + row - piece.first_row, page = position >> piece.page_shift;
  const int within = position - (page << piece.page_shift), number = task.tables[piece.table + page];
  std::byte* part = (is_key ? piece.keys : piece.values) +
                    part_offset<kBytes>(number, task.kv_heads, head, piece.page_positions, task.dim);
  const int in_block = first % 64;
  *reinterpret_cast<uint4*>(part + kv_offset<kBytes>(piece.page_positions, task.dim, within, first / 64,
                                                     kBytes == 128 ? in_block / 8 : in_block / 16)) = packed;
  if (kBytes == 64 && first == 0) {
    float* scales = is_key ? piece.key_scales : piece.value_scales;
    scales[(static_cast<std::ptrdiff_t>(number) * task.kv_heads + head) * piece.page_positions + within] = scale;
  }
}

template <int kLanes, int kBytes>
__global__ void __launch_bounds__(kThreads) store_kernel(const __grid_constant__ StoreTask task) {
  __shared__ float heads[kThreads * 8];
  begin_next();
  wait_for_earlier();
  const int lane = static_cast<int>(threadIdx.x) % kLanes, first = lane * 8;
  const int vectors = task.vectors;
  const long long vector = (static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x) / kLanes;
  const bool in_round = vector < static_cast<long long>(task.rows) * vectors, live = in_round && first < task.dim;
  const int row = in_round ? static_cast<int>(vector / vectors) : 0;
  int head = in_round ? static_cast<int>(vector % vectors) : 0;
  const int queries = task.queries != nullptr ? task.heads : 0;
  const bool is_query = head < queries, is_key = !is_query && head < queries + task.kv_heads;
  if (!is_query) head -= is_key ? queries : queries + task.kv_heads;
  const float* from = is_query ? task.queries + row * task.query_stride
                      : is_key ? task.keys + row * task.key_stride
                               : task.values + row * task.value_stride;
  float x[8] = {};
  if (live) {
    const float4 low = *reinterpret_cast<const float4*>(from + head * task.dim + first);
    const float4 high = *reinterpret_cast<const float4*>(from + head * task.dim + first + 4);
    x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
    x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
  }
  if (!is_query && !is_key) {
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = fminf(fmaxf(x[i], -kLargestValue), kLargestValue);
  }
  // Lanes of a warp may hold vectors of different kinds: all of them take part in every exchange.
  const float* weight = is_query ? task.query_norm : task.key_norm;
  if (task.query_norm != nullptr || task.key_norm != nullptr) {
    float normed[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) normed[i] = x[i];
    const bool wanted = (is_query || is_key) && weight != nullptr;
    norm<kLanes>(normed, weight, wanted ? first : task.dim, task.dim, task.eps);
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = wanted ? normed[i] : x[i];
  }
  if (task.cosine != nullptr) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * (task.rope_dims / 2);
    rotate(x, heads + threadIdx.x / kLanes * (kLanes * 8), first, is_query || is_key ? task.rope_dims : 0,
           task.cosine + at, task.sine + at);
  }
  if (is_query && live) {
    const std::ptrdiff_t column = head * task.dim + first;
    if (task.queries_out != nullptr) {
      const std::ptrdiff_t width = static_cast<std::ptrdiff_t>(task.heads) * task.dim;
      *reinterpret_cast<uint4*>(task.queries_out + row * width + column) = pack8(x);
    } else {
      float4* to = reinterpret_cast<float4*>(task.queries_in_place + row * task.query_stride + column);
      to[0] = {x[0], x[1], x[2], x[3]};
      to[1] = {x[4], x[5], x[6], x[7]};
    }
  }
  if (task.keys != nullptr) store<kLanes, kBytes>(task, x, row, head, is_key, first, live && !is_query);
}

template <int kLanes>
void launch(Recorder& recorder, const StoreTask& task, bool fp8) {
  const long long threads = static_cast<long long>(task.rows) * task.vectors * kLanes;
  const dim3 grid(static_cast<unsigned>((threads + kThreads - 1) / kThreads));
  recorder.launch("store of keys and values", fp8 ? store_kernel<kLanes, 64> : store_kernel<kLanes, 128>,
                  {grid, kThreads, 0, 1, true}, task);
}

}  // namespace

void store_kv(Recorder& recorder, const StoreKvArgs& args) {
  const bool has_queries = args.queries.data != nullptr, has_keys = args.keys.data != nullptr;
  CHECK(has_queries || has_keys, "store_kv: neither queries nor keys");
  CHECK(args.dim % 16 == 0 && args.dim <= 256 && args.rope.dims <= args.dim, "store_kv: heads of {}, {} rotated",
        args.dim, args.rope.dims);
  const auto aligned = [](const Matrix& m) {
    return m.data == nullptr || (m.stride % 4 == 0 && std::bit_cast<std::uintptr_t>(m.data) % 16 == 0);
  };
  CHECK(aligned(args.queries) && aligned(args.keys) && aligned(args.values), "store_kv: rows must be 16-byte aligned");
  StoreTask task{};
  bool fp8 = false;
  if (has_keys) {
    const KvPieces kv = list_pieces(recorder, args.pieces, args.views);
    CHECK(
        kv.rows == args.keys.rows && kv.rows == args.values.rows && kv.dim == args.dim && kv.kv_heads == args.kv_heads,
        "store_kv: {} rows of {} heads of {}, pieces of {} rows, {} heads of {}", args.keys.rows, args.kv_heads,
        args.dim, kv.rows, kv.kv_heads, kv.dim);
    task.pieces = recorder.put<KvPiece>(kv.list);
    task.tables = kv.tables;
    task.count = static_cast<int>(kv.list.size());
    fp8 = kv.fp8;
  }
  task.queries = task.queries_in_place = args.queries.data;
  task.keys = args.keys.data;
  task.values = args.values.data;
  task.query_stride = args.queries.stride;
  task.key_stride = args.keys.stride;
  task.value_stride = args.values.stride;
  task.queries_out = reinterpret_cast<__nv_bfloat16*>(args.queries_out);
  task.query_norm = args.query_norm;
  task.key_norm = args.key_norm;
  task.eps = args.eps;
  task.rope_dims = args.rope.cosine != nullptr ? args.rope.dims : 0;
  task.cosine = args.rope.cosine;
  task.sine = args.rope.sine;
  task.rows = has_queries ? args.queries.rows : args.keys.rows;
  task.heads = args.heads;
  task.kv_heads = args.kv_heads;
  task.dim = args.dim;
  task.vectors = (has_queries ? args.heads : 0) + (has_keys ? 2 * args.kv_heads : 0);
  if (args.dim <= 64) return launch<8>(recorder, task, fp8);
  if (args.dim <= 128) return launch<16>(recorder, task, fp8);
  launch<32>(recorder, task, fp8);
}

}  // namespace steadfast::cuda
