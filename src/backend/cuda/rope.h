// Rotary positions on the card. rope_table: cosine and sine of position * inverse[i] for each row, [rows][inverse], as
// model/rope.cc makes them: the angle a float32 product, sine and cosine in double (device/exact.h), rounded, times the
// magnitude. rope: (a, b) -> (a cos - b sin, b cos + a sin) on pairs (i, i + dims/2) of each head, no fma.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/recorder.h"

namespace steadfast::cuda {

// inverse: device memory, [half], linear scaling included.
void rope_table(Recorder& recorder, std::span<const std::int32_t> positions, const float* inverse, int half,
                float magnitude, float* cosine, float* sine);
void rope(Recorder& recorder, const Matrix& x, int heads, int dim, const RopeTable& table);

}  // namespace steadfast::cuda
