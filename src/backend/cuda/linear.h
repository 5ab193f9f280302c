// Linear on the card: out = x W^T (+ bias) (+ add) for several weights that read the same rows, and the embedding's
// rows. x [rows][in] float32, after its prologue rounded once to bf16; weights expanded to bf16 once (weight.h);
// products added in fp32 by mma.m16n8k16 in ascending K within the slices of linear_slices(out, in), slices added in
// ascending order; then + bias, then + add. Schedules differ by rows and card and give the same bits: `portable` (any
// card), `rows` (sm_90, up to 8 rows, by linear_chain.h), `mid` (sm_90, up to 96), `wide` (sm_90, more). Jobs are
// launched together where their weights have one form. An RMS norm's weight is applied to the row before, its factor
// behind the product: y = sum * factor + bias + add.
#pragma once

#include <span>

#include "backend/backend.h"
#include "backend/cuda/recorder.h"
#include "backend/cuda/weight.h"

namespace steadfast::cuda {

// What is done to a row on its way to bf16: but for kRmsNorm (above) the same float32 bits as the op of that name
// followed by kPlain.
enum class Prologue : std::uint8_t { kPlain, kRmsNorm, kSiluMul, kSigmoidMul, kGatedNorm };

struct LinearInput {
  Prologue prologue = Prologue::kPlain;
  Matrix x;
  Matrix gate;                    // kSigmoidMul, kGatedNorm: the gate; kSiluMul: `up`, x being the gate
  const float* weight = nullptr;  // kRmsNorm [width], kGatedNorm [dim]
  float eps = 0;
  int heads = 0, dim = 0;

  static LinearInput plain(const Matrix& x) { return {Prologue::kPlain, x, {}, nullptr, 0, 0, 0}; }
  static LinearInput rms_norm(const Matrix& x, const float* weight, float eps) {
    return {Prologue::kRmsNorm, x, {}, weight, eps, 0, 0};
  }
  static LinearInput silu_mul(const Matrix& gate, const Matrix& up) {
    return {Prologue::kSiluMul, gate, up, nullptr, 0, 0, 0};
  }
  static LinearInput sigmoid_mul(const Matrix& x, const Matrix& gate) {
    return {Prologue::kSigmoidMul, x, gate, nullptr, 0, 0, 0};
  }
  static LinearInput gated_norm(const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight,
                                float eps) {
    return {Prologue::kGatedNorm, x, gate, weight, eps, heads, dim};
  }
};

struct LinearJobArgs {
  const CudaWeight* weight = nullptr;
  Matrix out;
  const float* bias = nullptr;  // device memory, [out]
  const float* add = nullptr;   // same rows and stride as out; may be out's own data
};

// kWide: weights of one slice apart from those of more, each with the kernel that suits it; kTogether: all with the one
// that adds slices, whose units have fewer rows.
enum class LinearSchedule : std::uint8_t { kAuto, kPortable, kRows, kMid, kWide, kTogether };

// Scratch that linear() asks the recorder for, at most, with rows of at most `in` inputs.
std::size_t linear_scratch_bytes(const CardTraits& card, int rows, int in);

// schedule: for tests; kAuto chooses by rows and card.
void linear(Recorder& recorder, const LinearInput& input, std::span<const LinearJobArgs> jobs,
            LinearSchedule schedule = LinearSchedule::kAuto);
// What kAuto takes: "rows", "mid", "wide" or "portable", for `info`.
const char* linear_schedule(const CardTraits& card, int rows);

// out row i = the table's row ids[i], expanded: fma(code, scale, bias) in fp32.
void embed(Recorder& recorder, const CudaWeight& table, std::span<const TokenId> ids, const Matrix& out);

}  // namespace steadfast::cuda
