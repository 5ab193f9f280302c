// Rotary frequencies of a model, with the scalings default, linear, llama3 and yarn (model-spec 2.4). A round's tables
// are Backend::rope_table's: angles are products in float32, as in Hugging Face; sine and cosine are our own.
#pragma once

#include "model/config.h"

namespace steadfast {

// `rope` holds rope_theta and the scaling fields (rope_parameters, or rope_scaling with rope_theta beside it).
Result<RopeConfig> make_rope(const nlohmann::json& rope, double theta, int dims, int max_positions);

}  // namespace steadfast
