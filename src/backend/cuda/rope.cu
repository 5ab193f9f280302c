// One thread a pair.
#include "backend/cuda/device/exact.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/rope.h"

namespace steadfast::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads)
    rope_table_kernel(const std::int32_t* positions, const float* inverse, int half, int count, float magnitude,
                      float* cosine, float* sine) {
  begin_next();
  wait_for_earlier();
  const int at = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (at >= count) return;
  const float angle = static_cast<float>(positions[at / half]) * inverse[at % half];
  double s, c;
  exact_sincos(static_cast<double>(angle), s, c);
  cosine[at] = static_cast<float>(c) * magnitude;
  sine[at] = static_cast<float>(s) * magnitude;
}

__global__ void __launch_bounds__(kThreads) rope_kernel(Matrix x, int heads, int dim, RopeTable table) {
  begin_next();
  wait_for_earlier();
  const int half = table.dims / 2;
  const int unit = static_cast<int>(blockIdx.y) * kThreads + static_cast<int>(threadIdx.x);
  if (unit >= heads * half) return;
  const int row = static_cast<int>(blockIdx.x), i = unit % half;
  float* at = x.data + row * x.stride + unit / half * dim + i;
  const float a = at[0], b = at[half], cosine = table.cosine[row * half + i], sine = table.sine[row * half + i];
  at[0] = a * cosine - b * sine;
  at[half] = b * cosine + a * sine;
}

}  // namespace

void rope_table(Recorder& recorder, std::span<const std::int32_t> positions, const float* inverse, int half,
                float magnitude, float* cosine, float* sine) {
  const int count = static_cast<int>(positions.size()) * half;
  if (count == 0) return;
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  shape.block.x = kThreads;
  shape.early = true;
  recorder.launch("rope_table", rope_table_kernel, shape, recorder.put(positions), inverse, half, count, magnitude,
                  cosine, sine);
}

void rope(Recorder& recorder, const Matrix& x, int heads, int dim, const RopeTable& table) {
  if (table.dims == 0) return;
  LaunchShape shape;
  shape.grid =
      dim3(static_cast<unsigned>(x.rows), static_cast<unsigned>((heads * (table.dims / 2) + kThreads - 1) / kThreads));
  shape.block.x = kThreads;
  shape.early = true;
  recorder.launch("rope", rope_kernel, shape, x, heads, dim, table);
}

}  // namespace steadfast::cuda
