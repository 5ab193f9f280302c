// Faults of arithmetic: a norm summed in as many parts as there are threads, activations scaled by a neighbour.
#include <algorithm>
#include <cmath>

#include "verify/faults/forwarding_backend.h"
#include "verify/faults/planted.h"

namespace steadfast::planted {
namespace {

// A norm of its own, in float: each worker sums the squares of its part of the row, the parts are added in order.
class ThreadSum : public ForwardingBackend {
 public:
  ThreadSum(std::unique_ptr<Backend> inner, int workers) : ForwardingBackend(std::move(inner)), workers_(workers) {}
  using ForwardingBackend::linear;
  void linear(const LinearInput& input, std::span<const LinearJob> jobs) override { linear_in_parts(input, jobs); }
  void rms_norm(const Matrix& x, const float* weight, float eps, const Matrix& out) override {
    const auto width = static_cast<std::size_t>(x.width);
    std::vector<float> values = read(x);
    const std::vector<float> scales = read(Matrix(const_cast<float*>(weight), 1, x.width));
    const auto parts = static_cast<std::size_t>(workers_ > 0 ? workers_ : x.rows);
    for (int r = 0; r < x.rows; ++r) {
      const std::span<float> row = std::span(values).subspan(static_cast<std::size_t>(r) * width, width);
      float squares = 0;
      for (std::size_t part = 0; part < parts; ++part) {
        float sum = 0;
        for (std::size_t i = part * width / parts; i < (part + 1) * width / parts; ++i) sum += row[i] * row[i];
        squares += sum;
      }
      const float factor = 1.0f / std::sqrt(squares / static_cast<float>(width) + eps);
      for (std::size_t i = 0; i < width; ++i) row[i] = row[i] * factor * scales[i];
    }
    write(values, out);
  }

 private:
  int workers_;
};

// Every row but the first is rounded to the 255 steps that the largest value of the row before it gives.
class NeighbourScale : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void linear(const LinearInput& input, std::span<const LinearJob> jobs) override { linear_in_parts(input, jobs); }
  void linear(const Matrix& x, std::span<const LinearJob> jobs) override {
    if (x.rows < 2) return inner().linear(x, jobs);
    const auto width = static_cast<std::size_t>(x.width);
    const std::vector<float> values = read(x);
    std::vector<float> rounded = values;
    for (std::size_t i = width; i < values.size(); ++i) {
      if (i % width == 0) scale_ = scale_of(std::span(values).subspan(i - width, width));
      if (scale_ > 0) rounded[i] = std::clamp(std::nearbyint(values[i] / scale_), -127.0f, 127.0f) * scale_;
    }
    if (!rows_ || rows_->bytes() < rounded.size() * sizeof(float)) {
      auto memory = allocate(rounded.size() * sizeof(float));
      CHECK(memory.is_ok(), "a planted fault has no memory: {}", memory.message());
      rows_ = std::move(*memory);
    }
    const Matrix altered(static_cast<float*>(rows_->data()), x.rows, x.width);
    write(rounded, altered);
    inner().linear(altered, jobs);
  }

 private:
  static float scale_of(std::span<const float> row) {
    float largest = 0;
    for (const float value : row) largest = std::max(largest, std::abs(value));
    return largest / 127.0f;
  }
  float scale_ = 0;
  std::unique_ptr<DeviceMemory> rows_;
};

}  // namespace

std::unique_ptr<Backend> thread_sum(std::unique_ptr<Backend> inner, int workers) {
  return std::make_unique<ThreadSum>(std::move(inner), workers);
}
std::unique_ptr<Backend> neighbour_scale(std::unique_ptr<Backend> inner) {
  return std::make_unique<NeighbourScale>(std::move(inner));
}

}  // namespace steadfast::planted
