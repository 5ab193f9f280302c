// qwen3: RMSNorm over each head of q and k before the rotation; biases only if attention_bias (model-spec 2.1).
#include "model/families/family.h"

namespace steadfast {

const Family kQwen3 = {
    .name = "qwen3",
    .read =
        [](Fields& fields, ModelConfig& config) {
          config.qkv_bias = config.output_bias = fields.boolean("attention_bias", false);
          config.qk_norm = true;
        },
};

}  // namespace steadfast
