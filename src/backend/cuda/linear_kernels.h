// The kernels of each form of weights, as the launcher sees them: one table a form, each made in a source file of its
// own.
#pragma once

#include <iterator>

#include "backend/cuda/linear_plan.h"

namespace steadfast::cuda {

struct LinearKernel {
  void (*kernel)(LinearLaunch) = nullptr;
  const char* name = "";
  int rows = 0;    // of a block
  int strips = 1;  // of a unit
  int units = 0;   // that a block works on at once
  int threads = 0;
  int shared_bytes = 0;
};

struct ChainKernel {
  void (*kernel)(LinearChain) = nullptr;
  int shared_bytes = 0;
};

inline constexpr int kMidRows[] = {16, 32, 48, 64, 96};  // of the mid kernels' blocks
inline constexpr int kMostMidRows = kMidRows[std::size(kMidRows) - 1];

struct FormKernels {
  LinearKernel portable[2];  // 8 and 64 rows a block
  LinearKernel mid[std::size(kMidRows)];
  LinearKernel wide[2];  // of weights with one slice, with more
  ChainKernel chain;     // up to kChainRows rows
};

const FormKernels& kernels_of(Form form);

const FormKernels& four_kernels();
const FormKernels& four_split_kernels();
const FormKernels& four_float_kernels();
const FormKernels& eight_kernels();
const FormKernels& eight_float_kernels();
const FormKernels& dense_kernels();

}  // namespace steadfast::cuda
