// The table of all kernels over one instruction set S of simd.h.
#pragma once

#include "backend/cpu/delta_impl.h"
#include "backend/cpu/kernels_impl.h"
#include "backend/cpu/linear_impl.h"

namespace steadfast::cpu {
namespace {

template <typename S>
constexpr Kernels make_kernels() {
  return {.name = S::kName,
          .quantise = quantise<S>,
          .linear_int8 = linear_int8<S>,
          .linear_f32 = linear_f32<S>,
          .linear_dense = linear_dense<S>,
          .rms_norm = rms_norm<S>,
          .silu_mul = silu_mul<S>,
          .attention = attention<S>,
          .round_bf16 = round_bf16<S>,
          .sigmoid_mul = sigmoid_mul<S>,
          .conv_silu = conv_silu<S>,
          .l2_norm = l2_norm<S>,
          .delta_step = delta_step<S>};
}

}  // namespace
}  // namespace steadfast::cpu
