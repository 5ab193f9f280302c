// Products with an activation, and copies of rows, on the card. silu_mul: out = silu(gate) * up; sigmoid_mul: out = x *
// sigmoid(gate); out may be the first argument. gather: out row i = x's row rows[i]. copy_rows: same shape. copy_bytes:
// host data that an op before it may still read is put() and copied in order, so a replayed round repeats it.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/recorder.h"

namespace steadfast::cuda {

void silu_mul(Recorder& recorder, const Matrix& gate, const Matrix& up, const Matrix& out);
void sigmoid_mul(Recorder& recorder, const Matrix& x, const Matrix& gate, const Matrix& out);
void gather(Recorder& recorder, const Matrix& x, std::span<const int> rows, const Matrix& out);
void copy_rows(Recorder& recorder, const Matrix& from, const Matrix& to);
void copy_bytes(Recorder& recorder, void* to, const void* host, std::size_t bytes);

}  // namespace steadfast::cuda
