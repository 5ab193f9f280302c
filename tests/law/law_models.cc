// Models and comparisons of the row law's tests.
#include "law_models.h"

#include <gtest/gtest.h>

#include <bit>

#include "base/config.h"
#include "engine/score.h"

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

std::unique_ptr<LoadedModel> load(const LawModel& model, const Setting& setting) {
  LoadOptions options;
  options.act = setting.act;
  options.threads = setting.threads;
  options.isa = setting.isa;
  options.kv_dtype = setting.kv_dtype;
  auto loaded = load_model(model.path, options);
  EXPECT_TRUE(loaded.is_ok()) << model.name << ": " << loaded.message();
  return loaded ? std::move(*loaded) : nullptr;
}

std::vector<TokenId> some_ids(const LoadedModel& loaded, int count, std::uint64_t seed) {
  std::vector<TokenId> ids;
  std::uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;
  for (int i = 0; i < count; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<TokenId>((x >> 33) % static_cast<std::uint64_t>(loaded.card.vocab_size)));
  }
  return ids;
}

std::vector<float> logits_of(const LoadedModel& loaded, const std::vector<TokenId>& ids, int chunk) {
  std::vector<float> all;
  const auto vocab = static_cast<std::size_t>(loaded.card.vocab_size);
  const auto status = score(loaded, ids, chunk, [&](int, int rows, const float* logits) {
    all.insert(all.end(), logits, logits + static_cast<std::size_t>(rows) * vocab);
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.message();
  return all;
}

std::string first_difference(const std::vector<float>& a, const std::vector<float>& b, std::size_t width) {
  if (a.size() != b.size()) return fmt::format("sizes {} and {}", a.size(), b.size());
  std::size_t differing = 0, first = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    if (differing++ == 0) first = i;
  }
  if (differing == 0) return "equal";
  return fmt::format("{} of {} differ, first at position {} ({} and {})", differing, a.size(), first / width, a[first],
                     b[first]);
}

}  // namespace steadfast::test
