// The loader: two pinned buffers in turn, filled by threads that take tiles from a counter, copied by the card.
#include "backend/cuda/weight.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/pack.h"

namespace steadfast::cuda {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{48} << 20;

std::string describe(const AffineReader& reader, Form form) {
  const char* kept = code_bytes(form) == 512 ? "4" : "8";
  return fmt::format("affine {} bits, groups of {}, {} scales; {} bits on the card{}", reader.bits(), reader.group(),
                     info(reader.scale_dtype()).name, kept, float_scales(form) ? ", float scales" : "");
}

}  // namespace

CudaWeight::CudaWeight(int out, int in, Form form) : form_(form) {
  out_ = out;
  in_ = in;
  bytes_ = static_cast<std::size_t>(tiles()) * tile_bytes();
}

CudaWeight::~CudaWeight() { cudaFree(data_); }

Result<std::unique_ptr<WeightLoader>> WeightLoader::create(int threads) {
  std::unique_ptr<WeightLoader> loader(new WeightLoader);
  loader->threads_ = std::max(threads, 1);
  if (auto s = cuda_status(cudaStreamCreateWithFlags(&loader->stream_, cudaStreamNonBlocking), "cudaStreamCreate"); !s)
    return s;
  for (std::size_t i = 0; i < 2; ++i) {
    void* memory = nullptr;
    if (auto s = cuda_status(cudaMallocHost(&memory, kStagingBytes), "cudaMallocHost of the loader's buffers"); !s)
      return s;
    loader->staging_[i] = static_cast<std::uint8_t*>(memory);
    if (auto s = cuda_status(cudaEventCreateWithFlags(&loader->copied_[i], cudaEventDisableTiming), "cudaEventCreate");
        !s)
      return s;
  }
  return loader;
}

WeightLoader::~WeightLoader() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  for (std::size_t i = 0; i < 2; ++i) {
    if (copied_[i] != nullptr) cudaEventDestroy(copied_[i]);
    cudaFreeHost(staging_[i]);
  }
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

// False: a tile did not fit the weight's form.
Result<bool> WeightLoader::fill(CudaWeight& weight, const PackTile& pack_tile) {
  const std::size_t tile_bytes = weight.tile_bytes();
  const int block = static_cast<int>(kStagingBytes / tile_bytes);
  if (block == 0)
    return Status::error("a weight of {} inputs is wider than the CUDA backend takes; run it with --device cpu",
                         weight.in());
  if (weight.data_ == nullptr) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, weight.bytes()) != cudaSuccess) {
      cudaGetLastError();
      return Status::error("no room on the card for {} MiB of weights; use a smaller model or another card",
                           weight.bytes() >> 20);
    }
    weight.data_ = static_cast<std::uint8_t*>(memory);
  }
  std::atomic<bool> fits = true;
  for (int first = 0, half = 0; first < weight.tiles() && fits; first += block, half ^= 1) {
    const auto h = static_cast<std::size_t>(half);
    const int count = std::min(block, weight.tiles() - first);
    if (auto s = cuda_status(cudaEventSynchronize(copied_[h]), "upload of weights"); !s) return s;
    std::atomic<int> next = 0;
    const auto work = [&] {
      for (int i = next++; i < count && fits; i = next++) {
        std::uint8_t* to = staging_[h] + static_cast<std::size_t>(i) * tile_bytes;
        std::memset(to, 0, tile_bytes);
        if (!pack_tile(first + i, to)) fits = false;
      }
    };
    std::vector<std::thread> others;
    for (int i = 1; i < std::min(threads_, count); ++i) others.emplace_back(work);
    work();
    for (std::thread& thread : others) thread.join();
    std::uint8_t* to = weight.data_ + static_cast<std::size_t>(first) * tile_bytes;
    if (auto s = cuda_status(cudaMemcpyAsync(to, staging_[h], static_cast<std::size_t>(count) * tile_bytes,
                                             cudaMemcpyHostToDevice, stream_),
                             "upload of weights");
        !s)
      return s;
    if (auto s = cuda_status(cudaEventRecord(copied_[h], stream_), "cudaEventRecord"); !s) return s;
  }
  if (auto s = cuda_status(cudaStreamSynchronize(stream_), "upload of weights"); !s) return s;
  return fits.load();
}

Result<std::unique_ptr<Weight>> WeightLoader::pack(const AffineReader& reader, std::span<const int> row_map) {
  const int out = row_map.empty() ? reader.out() : static_cast<int>(row_map.size());
  for (Form form = affine_form(reader);; form = float_form(form)) {
    std::unique_ptr<CudaWeight> weight(new CudaWeight(out, reader.in(), form));
    auto filled = fill(*weight, [&](int tile, std::uint8_t* to) {
      return pack_tile(reader, form, tile_rows(out, row_map, tile), to);
    });
    if (!filled) return filled.status();
    if (!*filled) continue;  // a scale beyond bf16's reach: once more, with float scales
    weight->format_ = describe(reader, form);
    weight->group_ = reader.group();
    reader.release();
    return std::unique_ptr<Weight>(std::move(weight));
  }
}

Result<std::unique_ptr<Weight>> WeightLoader::pack(const DenseReader& reader, std::span<const int> row_map) {
  const int out = row_map.empty() ? reader.out() : static_cast<int>(row_map.size());
  std::unique_ptr<CudaWeight> weight(new CudaWeight(out, reader.in(), Form::kDense));
  auto filled = fill(*weight, [&](int tile, std::uint8_t* to) {
    pack_tile(reader, tile_rows(out, row_map, tile), to);
    return true;
  });
  if (!filled) return filled.status();
  const bool rounded = reader.dtype() != DType::kBF16;
  weight->format_ = fmt::format("{}{}", info(reader.dtype()).name, rounded ? ", rounded to BF16 on the card" : "");
  reader.release();
  return std::unique_ptr<Weight>(std::move(weight));
}

}  // namespace steadfast::cuda
