// linear: out = x W^T (+ bias) (+ add), for several weights that read the same x.
// x [rows, in]; weight [out, in]; bias [out]; add, out [rows, out]. The product first, + bias, + add.
// Arithmetic, CPU int8: x is quantised per row and weight group to int8; exact int32 dots; groups scaled and added in
// fp32, ascending. A fine job's x has 16-bit codes in two int8 digits: the same sums, exact too. CPU f32 and bf16: one
// fp32 chain over k ascending (bf16: x and expanded weights rounded first). Unquantised weights take the f32 arithmetic
// under int8 too: they have no groups. Jobs over rows of prompts take Backend::prompt_act(), all others act().
#pragma once

#include "backend/backend.h"

namespace steadfast::ops {

inline void linear(Backend& backend, const Matrix& x, std::span<const LinearJob> jobs) {
  for (const auto& job : jobs) {
    CHECK(job.weight->in() == x.width, "linear: weight reads {} inputs, x has {}", job.weight->in(), x.width);
    CHECK(job.prompt == jobs[0].prompt, "linear: jobs of both roles in one call");
    CHECK(job.out.rows == x.rows && job.out.width == job.weight->out(), "linear: out is {} by {}, not {} by {}",
          job.out.rows, job.out.width, x.rows, job.weight->out());
  }
  backend.linear(x, jobs);
}

inline void linear(Backend& backend, const Matrix& x, const LinearJob& job) { linear(backend, x, std::span(&job, 1)); }

inline LinearInput plain(const Matrix& x) { return {LinearInput::Kind::kPlain, x, {}, nullptr, 0, 0, 0, {}}; }
// The rows that a linear reads, made by another op (norm.h, elementwise.h, delta.h) in the same pass where a backend
// can.
inline LinearInput rms_normed(const Matrix& x, const float* weight, float eps, const Matrix& made) {
  return {LinearInput::Kind::kRmsNorm, x, {}, weight, eps, 0, 0, made};
}
inline LinearInput silu_multiplied(const Matrix& gate, const Matrix& up, const Matrix& made) {
  return {LinearInput::Kind::kSiluMul, gate, up, nullptr, 0, 0, 0, made};
}
inline LinearInput sigmoid_multiplied(const Matrix& x, const Matrix& gate, const Matrix& made) {
  return {LinearInput::Kind::kSigmoidMul, x, gate, nullptr, 0, 0, 0, made};
}
inline LinearInput gated_normed(const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight, float eps,
                                const Matrix& made) {
  return {LinearInput::Kind::kGatedNorm, x, gate, weight, eps, heads, dim, made};
}

inline void linear(Backend& backend, const LinearInput& input, std::span<const LinearJob> jobs) {
  for (const auto& job : jobs) {
    CHECK(job.weight->in() == input.x.width, "linear: weight reads {} inputs, x has {}", job.weight->in(),
          input.x.width);
    CHECK(job.prompt == jobs[0].prompt, "linear: jobs of both roles in one call");
    CHECK(job.out.rows == input.x.rows && job.out.width == job.weight->out(), "linear: out is {} by {}, not {} by {}",
          job.out.rows, job.out.width, input.x.rows, job.weight->out());
  }
  backend.linear(input, jobs);
}

inline void linear(Backend& backend, const LinearInput& input, const LinearJob& job) {
  linear(backend, input, std::span(&job, 1));
}

}  // namespace steadfast::ops
