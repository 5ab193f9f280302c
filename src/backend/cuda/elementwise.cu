// One thread an element; a row of the grid's y is a row of the matrices.
#include "backend/cuda/device/math.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/elementwise.h"

namespace steadfast::cuda {
namespace {

constexpr unsigned kThreads = 256;

enum class Product { kSilu, kSigmoid };

template <Product kProduct>
__global__ void __launch_bounds__(kThreads) product_kernel(Matrix a, Matrix b, Matrix out) {
  begin_next();
  wait_for_earlier();
  const int i = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (i >= a.width) return;
  const float x = a.data[blockIdx.x * a.stride + i], y = b.data[blockIdx.x * b.stride + i];
  out.data[blockIdx.x * out.stride + i] = kProduct == Product::kSilu ? silu(x) * y : x * sigmoid(y);
}

// rows nullptr: row i comes from row i.
__global__ void __launch_bounds__(kThreads) rows_kernel(Matrix from, const int* rows, Matrix to) {
  begin_next();
  wait_for_earlier();
  const int i = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (i >= to.width) return;
  const int row = rows == nullptr ? static_cast<int>(blockIdx.x) : rows[blockIdx.x];
  to.data[blockIdx.x * to.stride + i] = from.data[row * from.stride + i];
}

__global__ void __launch_bounds__(kThreads)
    bytes_kernel(unsigned char* to, const unsigned char* from, std::size_t bytes) {
  begin_next();
  wait_for_earlier();
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < bytes) to[i] = from[i];
}

LaunchShape by_elements(const Matrix& m) {
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(m.rows), (static_cast<unsigned>(m.width) + kThreads - 1) / kThreads);
  shape.block.x = kThreads;
  shape.early = true;
  return shape;
}

}  // namespace

void silu_mul(Recorder& recorder, const Matrix& gate, const Matrix& up, const Matrix& out) {
  recorder.launch("silu_mul", product_kernel<Product::kSilu>, by_elements(out), gate, up, out);
}

void sigmoid_mul(Recorder& recorder, const Matrix& x, const Matrix& gate, const Matrix& out) {
  recorder.launch("sigmoid_mul", product_kernel<Product::kSigmoid>, by_elements(out), x, gate, out);
}

void gather(Recorder& recorder, const Matrix& x, std::span<const int> rows, const Matrix& out) {
  if (out.rows > 0) recorder.launch("gather", rows_kernel, by_elements(out), x, recorder.put(rows), out);
}

void copy_rows(Recorder& recorder, const Matrix& from, const Matrix& to) {
  if (to.rows > 0) recorder.launch("copy_rows", rows_kernel, by_elements(to), from, nullptr, to);
}

void copy_bytes(Recorder& recorder, void* to, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>((bytes + kThreads - 1) / kThreads);
  shape.block.x = kThreads;
  shape.early = true;
  recorder.launch("copy_bytes", bytes_kernel, shape, static_cast<unsigned char*>(to),
                  static_cast<const unsigned char*>(recorder.put_bytes(host, bytes)), bytes);
}

}  // namespace steadfast::cuda
