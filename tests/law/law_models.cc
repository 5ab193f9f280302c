// Models of the row law's tests.
#include "law_models.h"

#include <gtest/gtest.h>

#include "base/config.h"

namespace steadfast::test {

std::vector<LawModel> law_models() {
  const std::filesystem::path tests = std::filesystem::path(STEADFAST_SOURCE_DIR) / "tests";
  std::vector<LawModel> models;
  for (const char* name : {"llama-a", "qwen2-a", "dense-qwen3-tied-yarn", "mlx-llama-mixed", "mlx-qwen3-f16",
                           "mlx-hybrid-mixed", "hybrid-d-dim256-one-to-four", "hybrid-e-unequal-dims"})
    models.push_back({name, tests / "golden" / name});
  models.push_back({"fixture", tests / "fixture" / "model"});
  const std::filesystem::path stored = config().models() / "smollm2";
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(stored, code))
    if (entry.path().extension() == ".gguf") models.push_back({"smollm2", entry.path()});
  return models;
}

bool on_card() { return config().device.value_or("cpu") != "cpu"; }

std::unique_ptr<LoadedModel> load(const LawModel& model, const Setting& setting) {
  LoadOptions options;
  options.act = setting.act;
  options.device = config().device.value_or("cpu");
  options.threads = setting.threads;
  options.isa = setting.isa;
  options.kv_dtype = setting.kv_dtype;
  auto loaded = load_model(model.path, options);
  EXPECT_TRUE(loaded.is_ok()) << model.name << ": " << loaded.message();
  return loaded ? std::move(*loaded) : nullptr;
}

std::vector<float> scored(const LoadedModel& loaded, const std::vector<TokenId>& ids, int chunk) {
  auto logits = logits_of(loaded, ids, chunk);
  EXPECT_TRUE(logits.is_ok()) << logits.message();
  return logits ? std::move(*logits) : std::vector<float>();
}

}  // namespace steadfast::test
