// Frequencies: theta^(-2i/dims) rounded to float32, then the scaling's formula in double, rounded to float32 again.
#include "model/rope.h"

#include <algorithm>
#include <cmath>

#include "base/exact_math.h"
#include "model/fields.h"

namespace steadfast {
namespace {

constexpr double kTwoPi = 6.283185307179586476925;

void scale_llama3(Fields& fields, RopeConfig& rope) {
  const double factor = fields.number("factor", 1e-3, 1e6, 8);
  const double low = fields.number("low_freq_factor", 1e-3, 1e6, 1);
  const double high = fields.number("high_freq_factor", 1e-3, 1e6, 4);
  const double original = fields.number("original_max_position_embeddings", 1, 1e9, 8192);
  if (high <= low) return fields.note("\"high_freq_factor\" must be above \"low_freq_factor\"");
  for (float& inverse : rope.inverse) {
    const double wavelength = kTwoPi / static_cast<double>(inverse);
    if (wavelength < original / high) continue;
    if (wavelength > original / low) {
      inverse = static_cast<float>(inverse / factor);
      continue;
    }
    const double smooth = (original / wavelength - low) / (high - low);
    inverse = static_cast<float>((1.0 - smooth) * inverse / factor + smooth * inverse);
  }
}

void scale_yarn(Fields& fields, double theta, int max_positions, RopeConfig& rope) {
  const double factor = fields.number("factor", 1e-3, 1e6, 1);
  const double original = fields.number("original_max_position_embeddings", 1, 1e9, max_positions);
  const double fast = fields.number("beta_fast", 1e-3, 1e6, 32), slow = fields.number("beta_slow", 1e-3, 1e6, 1);
  const auto magnitude = [&](double scale) { return factor <= 1 ? 1.0 : 0.1 * scale * exact_log(factor) + 1.0; };
  if (fields.has("attention_factor")) {
    rope.magnitude = static_cast<float>(fields.number("attention_factor", 1e-3, 1e3, 1));
  } else if (fields.has("mscale") && fields.has("mscale_all_dim")) {
    rope.magnitude = static_cast<float>(magnitude(fields.number("mscale", 0, 1e3, 1)) /
                                        magnitude(fields.number("mscale_all_dim", 0, 1e3, 0)));
  } else {
    rope.magnitude = static_cast<float>(magnitude(1.0));
  }
  const auto dim_of = [&](double turns) {
    return rope.dims * exact_log(original / (turns * kTwoPi)) / (2 * exact_log(theta));
  };
  double low = std::floor(dim_of(fast)), high = std::ceil(dim_of(slow));
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.dims - 1));
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < rope.inverse.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double inverse = rope.inverse[i];
    rope.inverse[i] = static_cast<float>(inverse * (1.0 - ramp) + inverse / factor * ramp);
  }
}

}  // namespace

Result<RopeConfig> make_rope(const nlohmann::json& scaling, double theta, int dims, int max_positions) {
  RopeConfig rope;
  rope.dims = dims;
  for (int i = 0; i < dims / 2; ++i)
    rope.inverse.push_back(static_cast<float>(exact_exp(-2.0 * i / dims * exact_log(theta))));
  if (!scaling.is_object()) return rope;
  Fields fields(scaling, "config.json: rope scaling");
  const std::string type = fields.text("rope_type", fields.text("type", "default"));
  if (type == "linear") {
    rope.position_factor = static_cast<float>(1.0 / fields.number("factor", 1e-3, 1e6, 1));
  } else if (type == "llama3") {
    scale_llama3(fields, rope);
  } else if (type == "yarn") {
    scale_yarn(fields, theta, max_positions, rope);
  } else if (type != "default" && type != "mrope") {
    return Status::error("config.json: rope scaling \"{}\" is not supported; default, linear, llama3 and yarn are",
                         type);
  }
  if (!fields.status()) return fields.status();
  return rope;
}

}  // namespace steadfast
