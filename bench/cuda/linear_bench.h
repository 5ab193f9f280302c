// What the checks and times of linears share: a recorder, weights of random numbers, device arrays.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "backend/cuda/linear.h"
#include "linear_problem.h"
#include "quant/dense.h"

namespace steadfast::bench {

inline void need(const Status& status) {
  if (status) return;
  std::printf("failed: %s\n", status.message().c_str());
  std::exit(1);
}
inline void need(cudaError_t error) { need(cuda::cuda_status(error, "CUDA")); }

template <typename T>
struct DeviceArray {
  explicit DeviceArray(std::size_t count) : size(count) {
    void* memory = nullptr;
    need(cudaMalloc(&memory, count * sizeof(T)));
    data = static_cast<T*>(memory);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    need(cudaMemcpy(data, values.data(), size * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  std::vector<T> host() const {
    std::vector<T> values(size);
    need(cudaMemcpy(values.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  T* data = nullptr;
  std::size_t size;
};

struct WeightShape {
  int out, in, bits = 4, group = 64;
  DType scales = DType::kBF16;
  float largest = 0.02f;  // about twice the largest weight
  bool dense = false;     // unquantised: these weights, expanded
};

// One unquantised matrix in memory: a random affine one, expanded.
struct ExpandedTensor : TensorSource {
  explicit ExpandedTensor(const RandomAffine& reader) {
    for (int row = 0; row < reader.out(); ++row)
      for (const double weight : reader.expanded(row, false)) values.push_back(static_cast<float>(weight));
    view = {"expanded", DType::kF32, {reader.out(), reader.in()}, std::as_bytes(std::span(values))};
  }
  const TensorView* find(std::string_view) const override { return &view; }
  std::vector<std::string> names() const override { return {view.name}; }
  void release(const TensorView&) const override {}
  std::vector<float> values;
  TensorView view;
};

struct Bench {
  Bench(int most_rows, int most_in) {
    cuda::RecorderOptions options;
    options.arena_bytes = 1 << 20;
    options.scratch_bytes = std::size_t{64} << 20;
    options.first_segment = options.segment = 4096;  // sent by run() alone, between the events
    {
      auto probe = cuda::Recorder::create(0, options);
      need(probe.status());
      options.scratch_bytes = cuda::linear_scratch_bytes((*probe)->card(), most_rows, most_in);
    }
    auto made = cuda::Recorder::create(0, options);
    need(made.status());
    recorder = std::move(*made);
    auto loading = cuda::WeightLoader::create(static_cast<int>(std::thread::hardware_concurrency()));
    need(loading.status());
    loader = std::move(*loading);
  }
  std::unique_ptr<Weight> pack(const AffineReader& reader) {
    auto weight = loader->pack(reader, {});
    need(weight.status());
    return std::move(*weight);
  }
  std::unique_ptr<Weight> pack_expanded(const RandomAffine& reader) {
    const ExpandedTensor tensor(reader);
    const auto dense = DenseReader::open(tensor, tensor.view);
    need(dense.status());
    auto weight = loader->pack(*dense, {});
    need(weight.status());
    return std::move(*weight);
  }
  void finish() {
    need(recorder->run());
    need(recorder->wait());
  }
  std::unique_ptr<cuda::Recorder> recorder;
  std::unique_ptr<cuda::WeightLoader> loader;
};

inline const cuda::CudaWeight* on_card(const std::unique_ptr<Weight>& weight) {
  return static_cast<const cuda::CudaWeight*>(weight.get());
}

}  // namespace steadfast::bench
