// What the tests of the row law share: the models they run on, rounds built by hand, and the comparison of bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/load_model.h"

namespace steadfast::test {

struct LawModel {
  std::string name;  // for the test's name
  std::filesystem::path path;
};

// Goldens (unquantised, mixed MLX bits, hybrids), the trained fixture, and the default model where it is stored.
std::vector<LawModel> law_models();

struct Setting {
  Act act = Act::kInt8;
  int threads = 1;
  std::string isa;
  std::optional<DType> kv_dtype;
};

// Fails the test where the model does not load.
std::unique_ptr<LoadedModel> load(const LawModel& model, const Setting& setting);

// `count` ids that depend on the seed alone.
std::vector<TokenId> some_ids(const LoadedModel& loaded, int count, std::uint64_t seed);

// Logits of every position, computed in pieces of `chunk` rows.
std::vector<float> logits_of(const LoadedModel& loaded, const std::vector<TokenId>& ids, int chunk);

// "equal", or the first position that differs and how many do: compares bits, so NaN equals NaN and 0 differs from -0.
std::string first_difference(const std::vector<float>& a, const std::vector<float>& b, std::size_t width);

}  // namespace steadfast::test
