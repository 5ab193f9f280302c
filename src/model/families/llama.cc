// llama (SmolLM2, Llama 3): optional biases on all four attention projections and on the MLP (model-spec 2.1).
#include "model/families/family.h"

namespace steadfast {

const Family kLlama = {
    .name = "llama",
    .read =
        [](Fields& fields, ModelConfig& config) {
          config.qkv_bias = config.output_bias = fields.boolean("attention_bias", false);
          config.mlp_bias = fields.boolean("mlp_bias", false);
        },
    .gguf_rotates_pairs = true,
};

}  // namespace steadfast
