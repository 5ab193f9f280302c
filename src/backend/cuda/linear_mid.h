// How linears of 9 to 96 rows are cut for the mid kernels (device/linear_mid.h). Schedule alone: no bit follows from
// it.
#pragma once

#include "backend/cuda/linear_kernels.h"
#include "backend/cuda/recorder.h"

namespace steadfast::cuda {

// The block of rows that `rows` rows take, the smallest of kMidRows that holds them.
int mid_block(int rows);
// Device memory that a launch with a block of `rows` rows needs beside its inputs, at most; that of any launch.
std::size_t mid_scratch_bytes(const CardTraits& card, int rows);
std::size_t most_mid_scratch_bytes(const CardTraits& card);
// All jobs have launch.slices slices, x is padded to mid_block(rows); scratch: mid_scratch_bytes() of that.
void launch_mid(Recorder& recorder, const FormKernels& kernels, LinearLaunch launch, void* scratch);

}  // namespace steadfast::cuda
