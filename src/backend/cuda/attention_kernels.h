// The launchers of attention's schedules; attention.cc chooses among them. All give the same bits.
#pragma once

#include <cuda_bf16.h>

#include "backend/cuda/attention_plan.h"

namespace steadfast::cuda {

// Parameters of an attention kernel.
struct AttentionTask {
  AttentionWork work;
  const std::int32_t* tables;
  const __nv_bfloat16* queries;  // [rows][heads * dim]
  float* out;                    // rows of out_stride floats
  std::ptrdiff_t out_stride;
  int group, kv_heads, dim;
  float log2_scale;         // log2(e) times the scale of scores
  float* partials;          // short pieces: [partial rows][dim + 4]: values, reference, sum
  float4 *totals, *states;  // long pieces: of units or blocks
  std::uint32_t* counters;  // [0] items drawn after each block's first, [1] blocks that have ended, [kFlags ...] runs
                            // of a unit that are done
};

struct AttentionGrid {
  int short_pairs = 0, long_pairs = 0, blocks = 0;
};

// mma.sync, any architecture from sm_80, any dim that is a multiple of 16 up to 256.
AttentionGrid portable_grid(const CardTraits& card);
void launch_portable(Recorder& recorder, const AttentionTask& task, bool short_pieces, bool fp8);

// wgmma, sm_90a, dims 64, 128 and 256.
bool has_hopper_attention(int dim);
AttentionGrid hopper_grid(const CardTraits& card, bool fp8);
void launch_hopper(Recorder& recorder, const AttentionTask& task, bool short_pieces, bool fp8);

// Short pieces: the spans' partial results become the rows of out.
void launch_fold(Recorder& recorder, const AttentionTask& task);

}  // namespace steadfast::cuda
