// A round's queries, keys and values from the linears' rows to where attention reads them, in one launch: queries and
// keys are normed per head (RMS), rotated (the first rope.dims dims, halves), queries written as bf16, keys and values
// rounded and stored in the cache of each piece's stream. Norm of a head: squares in chains of 8 consecutive dims by
// fma, chains added by a butterfly over the width; x * (1 / sqrt(sum / dim + eps)) * weight. Rotation: a cos - b sin, b
// cos + a sin, no fma. fp8: scales as cache_view.h says, numbers rounded to nearest even from float32. Values are made
// finite (the largest bf16; NaN the least): attention multiplies those behind the last position, others' too, by zero.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/cuda/recorder.h"

namespace steadfast::cuda {

struct StoreKvArgs {
  Matrix queries;                        // float32 rows of heads * dim; data nullptr: none
  std::uint16_t* queries_out = nullptr;  // bf16 [rows][heads * dim]; nullptr: written in place as float32
  Matrix keys, values;                   // float32 rows of kv_heads * dim; keys.data nullptr: neither
  int heads = 0, kv_heads = 0, dim = 0;
  const float *query_norm = nullptr, *key_norm = nullptr;  // [dim]; nullptr: no norm
  float eps = 0.0f;
  RopeTable rope;                    // cosine nullptr: no rotation
  std::span<const Piece> pieces;     // rows in order from 0; empty without keys
  std::span<const CacheView> views;  // one a piece, of this layer; pages: host memory
};

void store_kv(Recorder& recorder, const StoreKvArgs& args);

}  // namespace steadfast::cuda
