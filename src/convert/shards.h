// The weights of a result folder: planned tensors in shards of bounded size, each written as it is computed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "convert/plan.h"

namespace steadfast {

struct WrittenWeights {
  std::uint64_t bytes = 0;  // of tensor data
  int tensors = 0, shards = 0;
};

std::uint64_t bytes_of(const ConversionPlan& plan);

// model.safetensors, or model-0000i-of-0000n.safetensors with their index; a module is never cut. One module is in
// memory at a time. Orders the plan's jobs: what is of four bytes and more first, so that all data lies aligned.
Result<WrittenWeights> write_weights(const std::filesystem::path& folder, const TensorSource& source,
                                     ConversionPlan& plan, std::uint64_t shard_bytes,
                                     const std::function<void(int done, int total)>& progress);

}  // namespace steadfast
