// A row's norm is one block's work, a head's one warp's.
#include "backend/cuda/device/math.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/norm.h"

namespace steadfast::cuda {
namespace {

constexpr int kRowThreads = 1024;
constexpr int kHeadWarps = 8;

__global__ void __launch_bounds__(kRowThreads) rms_norm_kernel(Matrix x, const float* weight, float eps, Matrix out) {
  __shared__ float shared[kRowThreads / 32];
  begin_next();
  wait_for_earlier();
  const float* from = x.data + blockIdx.x * x.stride;
  float* to = out.data + blockIdx.x * out.stride;
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < x.width; i += kRowThreads)
    squares = __fmaf_rn(from[i], from[i], squares);
  const float sum = block_sum<kRowThreads / 32>(squares, shared);
  const float factor = norm_factor(sum, x.width, eps);
  for (int i = static_cast<int>(threadIdx.x); i < x.width; i += kRowThreads) to[i] = from[i] * factor * weight[i];
}

// gate.data nullptr: no gate.
__global__ void __launch_bounds__(kHeadWarps * 32)
    head_norm_kernel(Matrix x, Matrix gate, int heads, int dim, const float* weight, float eps, Matrix out) {
  begin_next();
  wait_for_earlier();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int unit = static_cast<int>(blockIdx.x) * kHeadWarps + static_cast<int>(threadIdx.x) / 32;
  if (unit >= x.rows * heads) return;
  const int row = unit / heads, first = unit % heads * dim;
  const float* from = x.data + row * x.stride + first;
  float* to = out.data + row * out.stride + first;
  float squares = 0;
  for (int i = lane; i < dim; i += 32) squares = __fmaf_rn(from[i], from[i], squares);
  const float factor = norm_factor(warp_sum(squares), dim, eps);
  for (int i = lane; i < dim; i += 32) {
    const float normed = from[i] * factor * weight[i];
    to[i] = gate.data == nullptr ? normed : normed * silu(gate.data[row * gate.stride + first + i]);
  }
}

void launch_heads(Recorder& recorder, const char* name, const Matrix& x, const Matrix& gate, int heads, int dim,
                  const float* weight, float eps, const Matrix& out) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>((x.rows * heads + kHeadWarps - 1) / kHeadWarps);
  shape.block.x = kHeadWarps * 32;
  shape.early = true;
  recorder.launch(name, head_norm_kernel, shape, x, gate, heads, dim, weight, eps, out);
}

}  // namespace

void rms_norm(Recorder& recorder, const Matrix& x, const float* weight, float eps, const Matrix& out) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(x.rows);
  shape.block.x = kRowThreads;
  shape.early = true;
  recorder.launch("rms_norm", rms_norm_kernel, shape, x, weight, eps, out);
}

void head_norm(Recorder& recorder, const Matrix& x, int heads, int dim, const float* weight, float eps) {
  launch_heads(recorder, "head_norm", x, Matrix(), heads, dim, weight, eps, x);
}

void gated_norm(Recorder& recorder, const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight,
                float eps, const Matrix& out) {
  launch_heads(recorder, "gated_norm", x, gate, heads, dim, weight, eps, out);
}

}  // namespace steadfast::cuda
