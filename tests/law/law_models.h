// The models that the tests of the row law run on, loaded under the settings that must not matter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verify/compare.h"

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

// Whether the tests run on a card (STEADFAST_DEVICE): it has one arithmetic, bf16.
bool on_card();

// On the device under test. Fails the test where the model does not load.
std::unique_ptr<LoadedModel> load(const LawModel& model, const Setting& setting);

// logits_of() that fails the test instead of returning a Status.
std::vector<float> scored(const LoadedModel& loaded, const std::vector<TokenId>& ids, int chunk);

}  // namespace steadfast::test
