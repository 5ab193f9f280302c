// Inputs of a Gated DeltaNet layer from a seed, the float64 step form of what it computes, and device memory with
// guards around it; for delta_check.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.h"

namespace steadfast::bench {

inline void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("FAILED %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// Device floats with a guard on both sides.
class Guarded {
 public:
  explicit Guarded(std::size_t floats, unsigned char poison = 0xFF) : floats_(floats) {
    must(cudaMalloc(&base_, (floats + 2 * kGuard) * 4), "cudaMalloc");
    must(cudaMemset(base_, kMark, (floats + 2 * kGuard) * 4), "cudaMemset");
    fill(poison);
  }
  ~Guarded() { cudaFree(base_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  float* data() const { return static_cast<float*>(base_) + kGuard; }
  std::size_t floats() const { return floats_; }
  void fill(unsigned char byte) { must(cudaMemset(data(), byte, floats_ * 4), "cudaMemset"); }
  void upload(const std::vector<float>& from) {
    must(cudaMemcpy(data(), from.data(), from.size() * 4, cudaMemcpyHostToDevice), "upload");
  }
  std::vector<float> download() const {
    std::vector<float> to(floats_);
    must(cudaMemcpy(to.data(), data(), floats_ * 4, cudaMemcpyDeviceToHost), "download");
    return to;
  }
  bool guards_hold() const {
    std::vector<unsigned char> guard(kGuard * 4);
    for (const float* at : {data() - kGuard, data() + floats_}) {
      must(cudaMemcpy(guard.data(), at, guard.size(), cudaMemcpyDeviceToHost), "download");
      for (const unsigned char byte : guard)
        if (byte != kMark) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 1024;
  static constexpr unsigned char kMark = 0x5A;
  void* base_ = nullptr;
  std::size_t floats_;
};

enum class Inputs { kRandom, kNearEqualKeys, kNoDecay, kStrongDecay, kForgetting };

struct Problem {
  DeltaShape shape;
  int rows;
  std::vector<float> x, a, b, conv, a_weight, dt_bias;

  Problem(const DeltaShape& s, int row_count, unsigned seed, Inputs kind = Inputs::kRandom)
      : shape(s), rows(row_count) {
    std::mt19937 dice(seed);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> uniform(1e-3f, 1.0f);
    const auto count = [](int n, int m) { return static_cast<std::size_t>(n) * static_cast<std::size_t>(m); };
    std::vector<float> pool(1 << 20);  // draws are the slow part: rows take theirs from one pool, at odd places
    for (float& value : pool) value = normal(dice);
    x.resize(count(rows, s.conv_width()));
    for (std::size_t i = 0; i < x.size(); i += 64) {
      const std::size_t at = dice() % (pool.size() - 64);
      for (std::size_t j = i; j < std::min(i + 64, x.size()); ++j) x[j] = pool[at + j - i];
    }
    for (int tap = 0; tap < s.taps * s.conv_width(); ++tap) conv.push_back(0.5f * normal(dice));
    const bool random = kind == Inputs::kRandom;
    for (int h = 0; h < s.value_heads; ++h) {
      a_weight.push_back(random ? -std::exp(-6.9f + 6.9f * static_cast<float>(h) / static_cast<float>(s.value_heads))
                                : -1.0f);
      dt_bias.push_back(random ? 0.3f * normal(dice) : 0.0f);
    }
    if (kind == Inputs::kNearEqualKeys)
      for (int row = 1; row < rows; ++row)
        for (int i = s.key_width(); i < 2 * s.key_width(); ++i)
          x[count(row, s.conv_width()) + i] = x[static_cast<std::size_t>(i)] + 0.1f * x[count(row, s.conv_width()) + i];
    for (std::size_t i = 0; i < count(rows, s.value_heads); ++i) {
      const bool forgets = kind == Inputs::kForgetting && uniform(dice) < 0.05f;
      const auto inverse_softplus = [](float y) { return y > 20 ? y : std::log(std::expm1(y)); };
      a.push_back(random                           ? normal(dice)
                  : kind == Inputs::kNearEqualKeys ? inverse_softplus(1e-4f)
                  : kind == Inputs::kNoDecay       ? -200.0f
                  : kind == Inputs::kStrongDecay   ? inverse_softplus(8.0f * uniform(dice))
                                                   : inverse_softplus(forgets ? 60.0f : 1e-3f));
      b.push_back(kind == Inputs::kNearEqualKeys ? 3.9f : kind == Inputs::kForgetting ? 6.9f : 1.5f * normal(dice));
    }
  }
};

// The rows that the recurrence reads, in float64 from the float32 inputs: largest distance of `got` (bf16) from them,
// in units of what bf16 and the float32 steps before it may be off.
inline double conv_error(const Problem& p, const std::vector<float>& got, int every) {
  const DeltaShape& s = p.shape;
  const int width = s.conv_width();
  double worst = 0;
  std::vector<double> y(static_cast<std::size_t>(width));
  for (int row = 0; row < p.rows; row += every) {
    for (int c = 0; c < width; ++c) {
      double sum = 0;
      for (int tap = 0; tap < s.taps; ++tap) {
        const int from = row - (s.taps - 1) + tap;
        if (from >= 0)
          sum += static_cast<double>(p.conv[static_cast<std::size_t>(tap) * width + c]) *
                 static_cast<double>(p.x[static_cast<std::size_t>(from) * width + c]);
      }
      y[c] = sum / (1 + std::exp(-sum));
    }
    for (int head = 0; head < 2 * s.key_heads; ++head) {
      double squares = 0;
      for (int i = 0; i < s.key_dim; ++i) squares += y[head * s.key_dim + i] * y[head * s.key_dim + i];
      const double scale =
          (head < s.key_heads ? 1 / std::sqrt(static_cast<double>(s.key_dim)) : 1.0) / std::sqrt(squares + 1e-6);
      for (int i = 0; i < s.key_dim; ++i) y[head * s.key_dim + i] *= scale;
    }
    for (int c = 0; c < width; ++c) {
      const double allowed = std::ldexp(std::fabs(y[c]), -8) * 1.01 + 1e-6;  // half a unit of bf16, and a little
      const double off = std::fabs(static_cast<double>(got[static_cast<std::size_t>(row) * width + c]) - y[c]);
      worst = off == off ? std::max(worst, off / allowed) : INFINITY;
    }
  }
  return worst;
}

// |out - exact| / |exact| over every `every`-th value head; rows_in: [rows][conv_width], as the card rounded them.
inline double recurrence_error(const Problem& p, const std::vector<float>& rows_in, const std::vector<float>& out,
                               int every) {
  const DeltaShape& s = p.shape;
  const int width = s.conv_width(), kd = s.key_dim, vd = s.value_dim;
  std::vector<double> errors(static_cast<std::size_t>(s.value_heads)), sizes(errors.size());
  const auto of_head = [&](int head) {
    const int key_head = s.tiled ? head % s.key_heads : head / (s.value_heads / s.key_heads);
    std::vector<double> state(static_cast<std::size_t>(kd) * vd), d(static_cast<std::size_t>(vd)), o(d.size());
    for (int row = 0; row < p.rows; ++row) {
      const float* q = &rows_in[static_cast<std::size_t>(row) * width + key_head * kd];
      const float* k = q + s.key_width();
      const float* v = &rows_in[static_cast<std::size_t>(row) * width + 2 * s.key_width() + head * vd];
      const double a = static_cast<double>(p.a[static_cast<std::size_t>(row) * s.value_heads + head]) +
                       static_cast<double>(p.dt_bias[head]);
      const double softplus = a > 30 ? a : std::log1p(std::exp(a));
      const double decay = std::exp(static_cast<double>(p.a_weight[head]) * softplus);
      const double beta =
          1 / (1 + std::exp(-static_cast<double>(p.b[static_cast<std::size_t>(row) * s.value_heads + head])));
      for (int j = 0; j < vd; ++j) d[j] = o[j] = 0;
      for (int i = 0; i < kd; ++i)
        for (int j = 0; j < vd; ++j) d[j] += (state[i * vd + j] *= decay) * static_cast<double>(k[i]);
      for (int j = 0; j < vd; ++j) d[j] = beta * (static_cast<double>(v[j]) - d[j]);
      for (int i = 0; i < kd; ++i)
        for (int j = 0; j < vd; ++j)
          o[j] += (state[i * vd + j] += static_cast<double>(k[i]) * d[j]) * static_cast<double>(q[i]);
      for (int j = 0; j < vd; ++j) {
        const double off =
            static_cast<double>(out[(static_cast<std::size_t>(row) * s.value_heads + head) * vd + j]) - o[j];
        errors[head] += off * off;
        sizes[head] += o[j] * o[j];
      }
    }
  };
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 16; ++worker)
    threads.emplace_back([&, worker] {
      for (int head = worker * every; head < s.value_heads; head += 16 * every) of_head(head);
    });
  for (auto& thread : threads) thread.join();
  double error = 0, size = 0;
  for (std::size_t h = 0; h < errors.size(); ++h) {
    error += errors[h];
    size += sizes[h];
  }
  return std::sqrt(error / size);
}

}  // namespace steadfast::bench
