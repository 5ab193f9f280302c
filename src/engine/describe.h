// What a model is and what this program does with it, as one JSON object: `info` prints it.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/load_model.h"

namespace steadfast {

// context: positions of a stream, for the memory plan. "modules" lists each kind of module (its name without the layer)
// with the number of matrices in each format; "state_bytes" is a stream's recurrent state, "stream_bytes" all it costs.
nlohmann::ordered_json describe(const LoadedModel& loaded, int context);

}  // namespace steadfast
