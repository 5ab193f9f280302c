// Rotary frequencies of a model, with the scalings default, linear, llama3 and yarn (model-spec 2.4), and the tables of
// a round. Angles are products in float32, as in Hugging Face; sine and cosine are our own (base/exact_math.h).
#pragma once

#include "model/config.h"

namespace steadfast {

// `rope` holds rope_theta and the scaling fields (rope_parameters, or rope_scaling with rope_theta beside it).
Result<RopeConfig> make_rope(const nlohmann::json& rope, double theta, int dims, int max_positions);

// cosine, sine: [positions][dims / 2].
void fill_rope(const RopeConfig& rope, const std::int32_t* positions, int count, float* cosine, float* sine);

}  // namespace steadfast
