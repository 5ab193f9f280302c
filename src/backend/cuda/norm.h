// Norms on the card. rms_norm: y = x * (1 / sqrt(mean x^2 + eps)) * weight over a row; x may be out. head_norm: over
// each head of `dim` values, in place. gated_norm: head norm of x, then * silu(gate); out may be x. Arithmetic: squares
// by fma in chains, element i in chain i mod 1,024 (a row) or i mod 32 (a head), ascending; chains added by
// device/reduce.h's tree; mean = sum / n; then x * factor * weight.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/recorder.h"

namespace steadfast::cuda {

void rms_norm(Recorder& recorder, const Matrix& x, const float* weight, float eps, const Matrix& out);
void head_norm(Recorder& recorder, const Matrix& x, int heads, int dim, const float* weight, float eps);
void gated_norm(Recorder& recorder, const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight,
                float eps, const Matrix& out);

}  // namespace steadfast::cuda
