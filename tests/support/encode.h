// Floats as the bytes of a tensor: F32, F16, BF16, and the GGUF block types Q4_0, Q4_1, Q8_0 (whole blocks of 32).
// The quantisers are plain and not tuned: they are for tests that need some valid blocks.
#pragma once

#include "support/bytes.h"
#include "tensor/dtype.h"

namespace steadfast::test {

Bytes encode(DType dtype, std::span<const float> values);

}  // namespace steadfast::test
