// A problem for the checks of attention: streams with random keys and values in caches of any page size, stored by
// store_kv, and what a float64 reference makes of the same rows. Caches and outputs lie between canaries.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "backend/cuda/attention.h"
#include "backend/cuda/store_kv.h"
#include "tensor/dtype.h"

namespace steadfast::cuda::check {

inline void need(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("FAILED %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
inline void need(const Status& status) {
  if (status) return;
  std::printf("FAILED %s\n", status.message().c_str());
  std::exit(1);
}

// Device memory between canaries.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_((bytes + 255) / 256 * 256) {
    need(cudaMalloc(&base_, bytes_ + 2 * kGuard), "cudaMalloc");
    need(cudaMemset(base_, kCanary, bytes_ + 2 * kGuard), "cudaMemset");
    need(cudaMemset(data(), 0, bytes_), "cudaMemset");
    need(cudaDeviceSynchronize(), "cudaMemset");
  }
  ~Memory() { cudaFree(base_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(base_) + kGuard; }
  std::size_t bytes() const { return bytes_; }
  bool intact() const {
    std::vector<unsigned char> guard(2 * kGuard);
    need(cudaMemcpy(guard.data(), base_, kGuard, cudaMemcpyDefault), "canary");
    need(cudaMemcpy(guard.data() + kGuard, data() + bytes_, kGuard, cudaMemcpyDefault), "canary");
    return std::all_of(guard.begin(), guard.end(), [](unsigned char c) { return c == kCanary; });
  }

 private:
  static constexpr std::size_t kGuard = 4096;
  static constexpr int kCanary = 0xA5;
  void* base_ = nullptr;
  std::size_t bytes_;
};

template <typename T>
std::vector<T> download(const void* from, std::size_t count) {
  std::vector<T> to(count);
  need(cudaMemcpy(to.data(), from, count * sizeof(T), cudaMemcpyDefault), "download");
  return to;
}

struct Shape {
  int heads, kv_heads, dim;
  bool fp8;
  AttentionShape attention() const { return {heads, kv_heads, dim, 1.0f / std::sqrt(static_cast<float>(dim))}; }
  int query_width() const { return heads * dim; }
  int kv_width() const { return kv_heads * dim; }
  std::size_t element() const { return fp8 ? 1 : 2; }
  std::size_t row_bytes() const { return static_cast<std::size_t>(kv_width()) * element(); }
};

// A pool of pages for `streams` streams of `window` positions, pages in random order; page 0: whole windows.
class Cache {
 public:
  Cache(const Shape& shape, int streams, int window, int page, unsigned seed)
      : shape_(shape), window_((window + 63) / 64 * 64), page_(page == 0 ? window_ : page) {
    pages_ = (window_ + page_ - 1) / page_;
    const auto positions =
        static_cast<std::size_t>(streams) * static_cast<std::size_t>(pages_) * static_cast<std::size_t>(page_);
    for (auto& part : parts_) part = std::make_unique<Memory>(positions * shape.row_bytes());
    for (auto& scale : scales_)
      scale = std::make_unique<Memory>(positions * static_cast<std::size_t>(shape.kv_heads) * sizeof(float));
    std::vector<std::int32_t> order(static_cast<std::size_t>(streams * pages_));
    std::iota(order.begin(), order.end(), 0);
    if (page != 0) std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    tables_ = order;
    whole_ = page == 0;
  }
  std::int32_t* table(int stream) { return tables_.data() + stream * pages_; }
  CacheView view(int stream) {
    CacheView view;
    view.keys = parts_[0]->data();
    view.values = parts_[1]->data();
    view.key_scales = reinterpret_cast<float*>(scales_[0]->data());
    view.value_scales = reinterpret_cast<float*>(scales_[1]->data());
    view.pages = table(stream);
    view.page_shift = whole_ ? 30 : __builtin_ctz(static_cast<unsigned>(page_));
    view.page_positions = page_;
    view.kv_heads = shape_.kv_heads;
    view.dim = shape_.dim;
    view.dtype = shape_.fp8 ? DType::kF8E4M3 : DType::kBF16;
    return view;
  }
  Memory& part(bool keys) { return *parts_[keys ? 0 : 1]; }
  Memory& scales(bool keys) { return *scales_[keys ? 0 : 1]; }
  int page() const { return page_; }
  bool intact() const {
    return parts_[0]->intact() && parts_[1]->intact() && scales_[0]->intact() && scales_[1]->intact();
  }

  // What position, head and dim hold, written independently of the kernels from the layout's text in kv_pieces.h.
  struct Host {
    std::vector<std::uint8_t> bytes;
    std::vector<float> scales;
  };
  Host host(bool keys) {
    return {download<std::uint8_t>(part(keys).data(), part(keys).bytes()),
            download<float>(scales(keys).data(), scales(keys).bytes() / sizeof(float))};
  }
  double value(const Host& host, int stream, int position, int head, int d) {
    const int page = table(stream)[position / page_], within = position % page_, tile = std::min(page_, 64);
    const int block = d / 64, width = std::min(64, shape_.dim - block * 64), in = d % 64, at = within % tile;
    const std::size_t part = (static_cast<std::size_t>(page) * shape_.kv_heads + head) * page_ * shape_.dim;
    const std::size_t base = part + static_cast<std::size_t>(within / tile) * tile * shape_.dim +
                             static_cast<std::size_t>(block) * tile * 64 + static_cast<std::size_t>(at) * width;
    if (!shape_.fp8) {
      int piece = in / 8;
      if (width == 64) piece ^= at % 8;
      std::uint16_t bits;
      std::memcpy(&bits, host.bytes.data() + (base + piece * 8 + in % 8) * 2, 2);
      return bf16_to_f32(bits);
    }
    int piece = in / 16;
    if (width == 64) piece ^= at / 2 % 4;
    const std::uint8_t bits = host.bytes[base + piece * 16 + (in % 8) * 2 + in % 16 / 8];
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
    const double scale = host.scales[(static_cast<std::size_t>(page) * shape_.kv_heads + head) * page_ + within];
    return (bits & 128 ? -magnitude : magnitude) * scale;
  }

 private:
  Shape shape_;
  int window_, page_, pages_;
  bool whole_;
  std::unique_ptr<Memory> parts_[2], scales_[2];
  std::vector<std::int32_t> tables_;
};

// Keys, values and queries of streams; queries for positions [first_query, positions).
struct Streams {
  struct One {
    int positions, first_query;
    std::vector<float> keys, values, queries;
  };
  Shape shape;
  std::vector<One> all;

  // wide: keys grow along the stream, so that references rise and fall between spans.
  Streams(const Shape& of, std::vector<std::pair<int, int>> lengths, unsigned seed, bool wide = false) : shape(of) {
    std::uint64_t state = seed * 977 + 1;
    const auto uniform = [&] {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      return static_cast<float>(state >> 40) * (1.0f / 16777216.0f) - 0.5f;
    };
    const auto fill = [&](std::vector<float>& x, std::size_t count, float scale) {
      x.resize(count);
      for (float& v : x) v = scale * uniform();
    };
    for (const auto& [positions, first] : lengths) {
      One one{positions, first, {}, {}, {}};
      fill(one.keys, static_cast<std::size_t>(positions) * shape.kv_width(), 3.0f);
      fill(one.values, static_cast<std::size_t>(positions) * shape.kv_width(), 2.0f);
      fill(one.queries, static_cast<std::size_t>(positions - first) * shape.query_width(), 4.0f);
      if (wide)
        for (int p = 0; p < positions; ++p)
          for (int i = 0; i < shape.kv_width(); ++i)
            one.keys[static_cast<std::size_t>(p) * shape.kv_width() + i] *= (p / 700) % 3 == 1 ? 40.0f : 1.0f;
      all.push_back(std::move(one));
    }
  }
};

// A cut of a round: rows [first, first + rows) of a stream, by position.
struct Cut {
  int stream, first, rows;
};

class Bench {
 public:
  Bench(std::size_t arena, std::size_t scratch, bool graphs) {
    RecorderOptions options;
    options.arena_bytes = arena;
    options.scratch_bytes = scratch;
    options.graphs = graphs;
    options.first_segment = options.segment = 1 << 20;
    auto made = Recorder::create(0, options);
    need(made.status());
    recorder_ = std::move(*made);
  }
  Recorder& recorder() { return *recorder_; }

  void store(const Streams& streams, Cache& cache, const std::vector<Cut>& cuts) {
    const Shape& shape = streams.shape;
    const auto [pieces, views] = round(cache, cuts);
    std::vector<float> keys, values;
    for (const Cut& cut : cuts) {
      const auto& one = streams.all[static_cast<std::size_t>(cut.stream)];
      const auto from = static_cast<std::ptrdiff_t>(cut.first) * shape.kv_width();
      const auto count = static_cast<std::ptrdiff_t>(cut.rows) * shape.kv_width();
      keys.insert(keys.end(), one.keys.begin() + from, one.keys.begin() + from + count);
      values.insert(values.end(), one.values.begin() + from, one.values.begin() + from + count);
    }
    const int rows = pieces.back().first_row + pieces.back().rows;
    Memory device_keys(keys.size() * sizeof(float)), device_values(keys.size() * sizeof(float));
    need(cudaMemcpy(device_keys.data(), keys.data(), keys.size() * sizeof(float), cudaMemcpyDefault), "upload");
    need(cudaMemcpy(device_values.data(), values.data(), values.size() * sizeof(float), cudaMemcpyDefault), "upload");
    need(cudaDeviceSynchronize(), "upload");  // the recorder's stream does not wait for it
    StoreKvArgs args;
    args.keys = Matrix(reinterpret_cast<float*>(device_keys.data()), rows, shape.kv_width());
    args.values = Matrix(reinterpret_cast<float*>(device_values.data()), rows, shape.kv_width());
    args.heads = shape.heads;
    args.kv_heads = shape.kv_heads;
    args.dim = shape.dim;
    args.pieces = pieces;
    args.views = views;
    store_kv(*recorder_, args);
    need(recorder_->run());
    need(recorder_->wait());
  }

  // Rows of the cuts, in order: [rows][heads * dim].
  std::vector<float> attend(const Streams& streams, Cache& cache, const std::vector<Cut>& cuts,
                            AttentionSchedule schedule) {
    const Shape& shape = streams.shape;
    const auto [pieces, views] = round(cache, cuts);
    std::vector<float> queries;
    for (const Cut& cut : cuts) {
      const auto& one = streams.all[static_cast<std::size_t>(cut.stream)];
      const auto from =
          one.queries.begin() + static_cast<std::ptrdiff_t>(cut.first - one.first_query) * shape.query_width();
      queries.insert(queries.end(), from, from + static_cast<std::ptrdiff_t>(cut.rows) * shape.query_width());
    }
    const int rows = pieces.back().first_row + pieces.back().rows;
    Memory in(queries.size() * sizeof(float)), packed(queries.size() * 2), out(queries.size() * sizeof(float));
    need(cudaMemcpy(in.data(), queries.data(), queries.size() * sizeof(float), cudaMemcpyDefault), "upload");
    need(cudaMemset(out.data(), 0xFF, out.bytes()), "poison");
    need(cudaMemset(recorder_->scratch(recorder_->scratch_bytes()), 0xFF, recorder_->scratch_bytes()), "poison");
    need(cudaDeviceSynchronize(), "poison");  // the recorder's stream does not wait for it
    StoreKvArgs prepare;
    prepare.queries = Matrix(reinterpret_cast<float*>(in.data()), rows, shape.query_width());
    prepare.queries_out = reinterpret_cast<std::uint16_t*>(packed.data());
    prepare.heads = shape.heads;
    prepare.dim = shape.dim;
    store_kv(*recorder_, prepare);
    AttentionArgs args;
    args.queries = prepare.queries_out;
    args.shape = shape.attention();
    args.pieces = pieces;
    args.views = views;
    args.out = Matrix(reinterpret_cast<float*>(out.data()), rows, shape.query_width());
    args.schedule = schedule;
    attention(*recorder_, args);
    need(recorder_->run());
    need(recorder_->wait());
    if (!in.intact() || !packed.intact() || !out.intact() || !cache.intact()) {
      std::printf("FAILED a canary was overwritten\n");
      std::exit(1);
    }
    return download<float>(out.data(), queries.size());
  }

 private:
  std::pair<std::vector<Piece>, std::vector<CacheView>> round(Cache& cache, const std::vector<Cut>& cuts) {
    std::vector<Piece> pieces;
    std::vector<CacheView> views;
    int rows = 0;
    for (const Cut& cut : cuts) {
      pieces.push_back({nullptr, rows, cut.rows, cut.first});
      views.push_back(cache.view(cut.stream));
      rows += cut.rows;
    }
    return {pieces, views};
  }
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace steadfast::cuda::check
