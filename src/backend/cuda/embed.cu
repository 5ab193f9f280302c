// Rows of a packed table, expanded. Four inputs a thread would gain nothing: a row is a few KiB.
#include "backend/cuda/device/fragments.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/linear.h"

namespace steadfast::cuda {
namespace {

constexpr int kThreads = 256;

// Feature f (0..15) at input k (0..63) of a strip's chunk.
__device__ float weight_at(const std::uint8_t* strip, Form form, int f, int k) {
  const int step = k / 16, inner = k % 16, lane = f % 8 * 4 + inner % 8 / 2;
  const int j = inner / 8 * 2 + f / 8, odd = k & 1;  // word of the fragment, half of the word
  if (form == Form::kDense) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(strip + step * 512 + lane * 16);
    return __uint_as_float(odd != 0 ? words[j] & 0xFFFF0000u : words[j] << 16);
  }
  unsigned code;
  if (code_bytes(form) == 512) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(strip + lane * 16);
    code = words[step] >> (4 * j + 16 * odd) & 15;
  } else {
    code = strip[step / 2 * 512 + lane * 16 + step % 2 * 8 + j / 2 * 4 + odd * 2 + j % 2];
  }
  const int group = groups_per_chunk(form) == 2 ? k / 32 : 0, slot = f % 8 * 4 + f / 8 * 2;
  const std::uint8_t* scales = strip + code_bytes(form) + group * group_bytes(form);
  if (float_scales(form)) {
    const auto* pair = reinterpret_cast<const float*>(scales) + slot;
    return __fmaf_rn(static_cast<float>(code), pair[0], pair[1]);
  }
  const auto* pair = reinterpret_cast<const __nv_bfloat16*>(scales) + slot;
  const float back = __uint_as_float(static_cast<unsigned>(127 - 67) << 23);  // the packed power of two in two steps
  const float rest = __uint_as_float(static_cast<unsigned>(127 - (scale_exponent(form) - 67)) << 23);
  return __fmaf_rn(static_cast<float>(code), __bfloat162float(pair[0]) * back * rest, __bfloat162float(pair[1]));
}

__global__ void __launch_bounds__(kThreads)
    embed_rows(const std::uint8_t* table, Form form, int chunks, const TokenId* ids, Matrix out) {
  begin_next();
  wait_for_earlier();
  const int row = static_cast<int>(blockIdx.y), id = static_cast<int>(ids[row]);
  const int k = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (k >= out.width) return;
  const int tile = id / kTileFeatures, strip = id % kTileFeatures / kStripFeatures;
  const std::size_t at = static_cast<std::size_t>(tile) * static_cast<std::size_t>(chunks) * kTileStrips +
                         static_cast<std::size_t>(strip_place(form, chunks, strip, k / kChunk));
  out.data[row * out.stride + k] =
      weight_at(table + at * static_cast<std::size_t>(strip_bytes(form)), form, id % kStripFeatures, k % kChunk);
}

}  // namespace

void embed(Recorder& recorder, const CudaWeight& table, std::span<const TokenId> ids, const Matrix& out) {
  CHECK(out.width == table.in() && out.rows == static_cast<int>(ids.size()), "embed: {} by {} for {} ids of {}",
        out.rows, out.width, ids.size(), table.in());
  if (ids.empty()) return;
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(divide_up(out.width, kThreads)), static_cast<unsigned>(out.rows));
  shape.block.x = kThreads;
  shape.early = true;
  recorder.launch("embed", embed_rows, shape, table.data(), table.form(), table.chunks(), recorder.put(ids), out);
}

}  // namespace steadfast::cuda
