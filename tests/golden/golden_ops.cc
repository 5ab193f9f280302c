// Packs a case's tensors as the model lays them out: [queries | keys | values] a row, value dims padded to 16.
#include "golden_ops.h"

#include <algorithm>
#include <cmath>

#include "ops/delta.h"

namespace steadfast::test {

std::map<std::string, StoredTensor> read_ops(const std::string& name) {
  return read_tensors(golden_folder("ops") / (name + ".safetensors"));
}

DeltaCase::DeltaCase(const std::map<std::string, StoredTensor>& tensors, const std::string& name) {
  const auto get = [&](const char* part) { return tensors.at(name + "." + part); };
  const auto extent = [&](const char* part, std::size_t dim) { return static_cast<int>(get(part).shape[dim]); };
  shape = {extent("q", 1), extent("v", 1), extent("q", 2), extent("v", 2), 4};
  rows = extent("q", 0);
  q = get("q").floats();
  k = get("k").floats();
  v = get("v").floats();
  g = get("g").floats();
  beta = get("beta").floats();
  state = get("state").floats();
}

std::vector<float> DeltaCase::unpadded(const std::vector<float>& padded) const {
  const auto width = static_cast<std::size_t>(shape.padded_value_dim()),
             dim = static_cast<std::size_t>(shape.value_dim);
  std::vector<float> values;
  for (std::size_t at = 0; at < padded.size(); at += width)
    values.insert(values.end(), padded.begin() + static_cast<std::ptrdiff_t>(at),
                  padded.begin() + static_cast<std::ptrdiff_t>(at + dim));
  return values;
}

DeltaRun::DeltaRun(const DeltaCase& c) : shape(c.shape), rows(c.rows) {
  const auto keys = static_cast<std::size_t>(shape.key_width()), values = static_cast<std::size_t>(shape.value_width());
  const auto put = [&](const std::vector<float>& from, std::size_t row, std::size_t width) {
    mixed.insert(mixed.end(), from.begin() + static_cast<std::ptrdiff_t>(row * width),
                 from.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
  };
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    put(c.q, row, keys);
    put(c.k, row, keys);
    put(c.v, row, values);
  }
  for (const float g : c.g) a.push_back(static_cast<float>(std::log(std::expm1(-static_cast<double>(g)))));
  for (const float beta : c.beta)
    b.push_back(static_cast<float>(std::log(static_cast<double>(beta) / (1 - static_cast<double>(beta)))));
  state.resize(shape.state_floats());
  const auto width = static_cast<std::size_t>(shape.padded_value_dim()),
             dim = static_cast<std::size_t>(shape.value_dim);
  for (std::size_t i = 0; i < c.state.size(); ++i) state[i / dim * width + i % dim] = c.state[i];
  out.resize(static_cast<std::size_t>(rows) * values);
}

void DeltaRun::step(Backend& backend, int piece_rows) {
  const std::vector<float> a_weight(static_cast<std::size_t>(shape.value_heads), -1.0f), dt_bias(a_weight.size());
  DeltaWeights weights;
  weights.a = a_weight.data();
  weights.dt_bias = dt_bias.data();
  for (int first = 0; first < rows; first += piece_rows) {
    const int here = std::min(piece_rows, rows - first);
    const auto part = [&](std::vector<float>& all, int width) {
      return Matrix(all.data() + static_cast<std::ptrdiff_t>(first) * width, here, width);
    };
    const Piece piece{nullptr, 0, here, first};
    const DeltaState at{nullptr, state.data()};
    ops::delta_rule(backend, part(mixed, shape.conv_width()), part(a, shape.value_heads), part(b, shape.value_heads),
                    shape, weights, {&piece, 1}, {&at, 1}, part(out, shape.value_width()));
  }
}

}  // namespace steadfast::test
