// What host and kernels share about int8 linears: how quantised rows lie in scratch, and what a launch is told. No
// kernel here. Weights lie as linear_plan.h says.
// Rows: codes int8 [chunk][padded row][64], then {scale, scale * sum of codes} float2 [group][padded row]. A chunk's 64
// codes are 4 blocks of 16; input k of a block is byte 2 (k % 8) + k / 8: the order in which a packed weight's bytes
// come out of its words. Block b of a row lies at b XOR (row / 2 % 4).
#pragma once

#include "backend/cuda/linear_plan.h"

namespace steadfast::cuda {

struct QuantisedRows {
  std::int8_t* codes = nullptr;
  float* scales = nullptr;
  int padded_rows = 0, chunks = 0;
  int group = 0;  // inputs: 32 or 64
  int unused = 0;
};

struct Int8Launch {
  JobView jobs[kMostJobs];
  const std::int8_t* codes = nullptr;
  const float* scales = nullptr;
  int job_count = 0, tiles = 0;
  int rows = 0, padded_rows = 0, row_blocks = 0;
  int chunks = 0;
};
// Graphs are found by their parameters' bytes.
static_assert(std::has_unique_object_representations_v<Int8Launch>);
static_assert(std::has_unique_object_representations_v<QuantisedRows>);

struct Int8Kernel {
  void (*kernel)(Int8Launch) = nullptr;
  const char* name = "";
  int threads = 0, shared_bytes = 0;
  int rows = 0, strips = 0;  // of a block
};

// Kernels of a form of weights in groups of 32, or of 64 and more.
struct Int8Kernels {
  Int8Kernel many, few, least;  // rows and features of a block: 64 x 128, 32 x 64, 32 x 32
};
const Int8Kernels& int8_four_kernels();
const Int8Kernels& int8_four_split_kernels();
const Int8Kernels& int8_four_float_kernels(int group);
const Int8Kernels& int8_eight_kernels(int group);
const Int8Kernels& int8_eight_float_kernels(int group);

}  // namespace steadfast::cuda
