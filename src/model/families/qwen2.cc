// qwen2 (Qwen2, Qwen2.5): biases on q, k and v, none on the output (model-spec 2.1).
#include "model/families/family.h"

namespace steadfast {

const Family kQwen2 = {
    .name = "qwen2",
    .read = [](Fields&, ModelConfig& config) { config.qkv_bias = true; },
};

}  // namespace steadfast
