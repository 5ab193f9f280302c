// A matrix of weights in the card's memory, packed as linear_plan.h says, and the loader that packs: host threads pack
// tiles of 128 features into pinned memory while the tiles before are copied. 4-bit codes stay 4 bits; 2 and 3 bits
// become 4, 5 and 6 become 8. Unquantised weights are rounded to bf16 once.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "backend/cuda/linear_plan.h"

namespace steadfast::cuda {

class CudaWeight : public Weight {
 public:
  ~CudaWeight() override;
  const std::uint8_t* data() const { return data_; }
  Form form() const { return form_; }
  int group() const { return group_; }  // inputs of a group; 0: unquantised
  int tiles() const { return divide_up(out_, kTileFeatures); }
  int chunks() const { return chunks_of(in_); }
  int slices() const { return linear_slices(out_, in_); }
  std::size_t tile_bytes() const {
    return static_cast<std::size_t>(chunks()) * kTileStrips * static_cast<std::size_t>(strip_bytes(form_));
  }

 private:
  friend class WeightLoader;
  CudaWeight(int out, int in, Form form);
  std::uint8_t* data_ = nullptr;
  Form form_;
  int group_ = 0;
};

class WeightLoader {
 public:
  // threads: of the host, for packing. Allocates two pinned buffers.
  static Result<std::unique_ptr<WeightLoader>> create(int threads);
  ~WeightLoader();
  WeightLoader(const WeightLoader&) = delete;
  WeightLoader& operator=(const WeightLoader&) = delete;

  // Feature r of the weight is row row_map[r] of the file; empty: every row. Returns when the weight is on the card.
  Result<std::unique_ptr<Weight>> pack(const AffineReader& reader, std::span<const int> row_map);
  Result<std::unique_ptr<Weight>> pack(const DenseReader& reader, std::span<const int> row_map);

 private:
  // Packs one tile into its tile_bytes(), which are zero; false: the form cannot hold it.
  using PackTile = std::function<bool(int tile, std::uint8_t* to)>;

  WeightLoader() = default;
  Result<bool> fill(CudaWeight& weight, const PackTile& pack_tile);

  int threads_ = 1;
  cudaStream_t stream_ = nullptr;
  std::array<std::uint8_t*, 2> staging_{};
  std::array<cudaEvent_t, 2> copied_{};
};

}  // namespace steadfast::cuda
