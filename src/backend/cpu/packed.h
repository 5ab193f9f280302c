// Weights as the CPU kernels read them: tiles of 16 features, chunks of 32 inputs, planes of 8, 4, 2 and 1 bits.
// A feature's bits are the file's: packing moves codes, scales and biases and changes none.
#pragma once

#include <span>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/thread_team.h"
#include "tensor/storage.h"

namespace steadfast::cpu {

class PackedWeight : public Weight {
 public:
  static Result<std::unique_ptr<Weight>> from(const AffineReader& reader, std::span<const int> row_map,
                                              ThreadTeam& team);
  static Result<std::unique_ptr<Weight>> from(const DenseReader& reader, std::span<const int> row_map,
                                              ThreadTeam& team);

  bool is_affine() const { return affine_.codes != nullptr; }
  const AffineWeight& affine() const { return affine_; }
  const DenseWeight& dense() const { return dense_; }
  int tiles() const { return (out_ + kLanes - 1) / kLanes; }
  // Feature `row` expanded to in() floats, as the f32 kernels expand it.
  void expand(int row, float* out) const;

 private:
  AffineWeight affine_;
  DenseWeight dense_;
  Storage storage_;
};

}  // namespace steadfast::cpu
