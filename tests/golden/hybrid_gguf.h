// A hybrid's folder turned into the bytes of a GGUF file as model-spec 1.10 says: names, norms + 1, -exp(A_log), value
// heads from grouped to tiled order, all tensors F32. An MTP head becomes the block behind the model's own.
#pragma once

#include "support/checkpoint.h"
#include "support/gguf_builder.h"

namespace steadfast::test {

struct HybridGgufFaults {
  bool grouped_heads = false;  // leaves the value heads in the folder's order
};

GgufBuilder hybrid_gguf(const Checkpoint& checkpoint, const HybridGgufFaults& faults);

}  // namespace steadfast::test
