// The fixture against mlx-lm's logits and replies, hybrids turned into GGUF against the goldens of their folders, and
// faults planted in hybrids and in quantised models, which the comparison of golden_logits_test must see.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "golden_compare.h"
#include "hybrid_gguf.h"
#include "support/checkpoint.h"

namespace steadfast::test {
namespace {

namespace fs = std::filesystem;

// In standard deviations of the golden's logits. f32 differs from the other program by the order of its sums alone;
// bf16 rounds activations to 8 bits (0.21 seen), int8 quantises those that meet quantised weights (0.54 seen).
double limit_of(Act act) {
  if (act == Act::kF32) return 2e-3;
  return act == Act::kBF16 ? 0.3 : 0.8;
}

fs::path shared_hybrid() { return fs::path(STEADFAST_SOURCE_DIR) / ".." / "shared" / "data" / "golden" / "hybrid-a"; }

std::string test_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void expect_logits(const fs::path& folder, Act act) {
  const Golden golden = read_golden(folder);
  const auto loaded = load_golden(folder, act);
  ASSERT_NE(loaded, nullptr);
  const double largest = largest_difference(scored(*loaded, golden.ids), golden.logits);
  std::cout << "largest difference: " << largest << " standard deviations\n";
  EXPECT_LE(largest, limit_of(act));
  EXPECT_GT(largest, 0) << "a comparison of the file with itself";
}

void expect_greedy(const fs::path& folder) {
  const Golden golden = read_golden(folder);
  auto loaded = load_golden(folder, Act::kF32);
  ASSERT_NE(loaded, nullptr);
  ASSERT_GE(golden.greedy.size(), 24u);
  EXPECT_EQ(greedy_reply(std::move(loaded), golden.ids, golden.greedy.size()), golden.greedy);
}

TEST(HybridGoldens, SharedHybridAgrees) {
  if (!fs::exists(shared_hybrid())) GTEST_SKIP() << "the golden hybrid-a is not beside this checkout";
  expect_logits(shared_hybrid(), finest());
  if (has(Act::kF32)) expect_greedy(shared_hybrid());
}

nlohmann::json fixture_prompts() {
  return nlohmann::json::parse(read_text(golden_folder("fixture") / "golden.json"))["prompts"];
}

fs::path fixture_folder() { return fs::path(STEADFAST_SOURCE_DIR) / "tests" / "fixture" / "model"; }

class FixtureLogits : public testing::TestWithParam<Act> {};

TEST_P(FixtureLogits, OfTheStoredRowsAreWithinTheLimit) {
  if (!has(GetParam())) GTEST_SKIP() << "this device has bf16 alone";
  const auto loaded = load_golden(fixture_folder(), GetParam());
  ASSERT_NE(loaded, nullptr);
  const auto stored = read_tensors(golden_folder("fixture") / "logits.safetensors");
  const auto vocab = static_cast<std::size_t>(loaded->card.vocab_size);
  int compared = 0;
  for (const auto& prompt : fixture_prompts()) {
    const std::string name = prompt["name"];
    const auto all = scored(*loaded, prompt["ids"].get<std::vector<TokenId>>());
    std::vector<float> rows;
    for (const std::size_t row : prompt["rows"].get<std::vector<std::size_t>>())
      rows.insert(rows.end(), all.begin() + static_cast<std::ptrdiff_t>(row * vocab),
                  all.begin() + static_cast<std::ptrdiff_t>((row + 1) * vocab));
    const double largest = largest_difference(rows, stored.at(name + ".logits").floats());
    std::cout << name << ": largest difference " << largest << " standard deviations\n";
    EXPECT_LE(largest, limit_of(GetParam())) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 8);
}

INSTANTIATE_TEST_SUITE_P(Fixture, FixtureLogits, testing::Values(Act::kF32, Act::kBF16, Act::kInt8),
                         [](const auto& one) { return to_string(one.param); });

TEST(FixtureGreedy, RepliesAreTheSame) {
  if (!has(Act::kF32)) GTEST_SKIP() << "this device has bf16 alone";
  for (const auto& prompt : fixture_prompts()) {
    const auto greedy = prompt["greedy"].get<std::vector<TokenId>>();
    auto loaded = load_golden(fixture_folder(), Act::kF32);
    ASSERT_NE(loaded, nullptr);
    EXPECT_EQ(greedy_reply(std::move(loaded), prompt["ids"].get<std::vector<TokenId>>(), greedy.size()), greedy)
        << prompt["name"];
  }
}

// The distance of a changed copy from the golden.
double changed_difference(const std::string& name, Act act, void (*change)(Checkpoint&)) {
  const Golden golden = read_golden(golden_folder(name));
  Checkpoint checkpoint = Checkpoint::read(golden.folder);
  change(checkpoint);
  const TempFolder folder;
  checkpoint.write(folder);
  const auto loaded = load_golden(folder.path(), act);
  return loaded ? largest_difference(scored(*loaded, golden.ids), golden.logits) : 0;
}

void scale(Checkpoint& checkpoint, const std::string& name, float factor) {
  StoredTensor& tensor = checkpoint.tensors.at(name);
  auto values = tensor.floats();
  for (float& value : values) value *= factor;
  tensor = StoredTensor::of(tensor.dtype, tensor.shape, values);
}

TEST(PlantedFaults, UnchangedCopyPasses) {
  EXPECT_LE(changed_difference("hybrid-b-dim64-equal-heads", finest(), [](Checkpoint&) {}), limit_of(finest()));
}

TEST(PlantedFaults, ScaledTensorFails) {
  for (const Act act : {Act::kF32, Act::kBF16, Act::kInt8}) {
    if (!has(act)) continue;
    EXPECT_GT(changed_difference("hybrid-b-dim64-equal-heads", act,
                                 [](Checkpoint& c) { scale(c, "model.layers.1.linear_attn.in_proj_z.weight", 2.0f); }),
              limit_of(act))
        << to_string(act);
  }
}

TEST(PlantedFaults, ScaledGroupsOfAQuantisedModuleFail) {
  for (const Act act : {Act::kF32, Act::kBF16, Act::kInt8}) {
    if (!has(act)) continue;
    EXPECT_GT(changed_difference(
                  "mlx-hybrid-mixed", act,
                  [](Checkpoint& c) { scale(c, "language_model.model.layers.2.linear_attn.out_proj.scales", 2.0f); }),
              limit_of(act))
        << to_string(act);
  }
}

TEST(PlantedFaults, ReversedTapsOfOneLayerFail) {
  if (!has(Act::kF32)) GTEST_SKIP() << "this device has bf16 alone";
  EXPECT_GT(changed_difference("hybrid-e-unequal-dims", Act::kF32,
                               [](Checkpoint& c) {
                                 StoredTensor& conv = c.tensors.at("model.layers.2.linear_attn.conv1d.weight");
                                 auto values = conv.floats();
                                 for (auto channel = values.begin(); channel != values.end(); channel += 4)
                                   std::reverse(channel, channel + 4);
                                 conv = StoredTensor::of(conv.dtype, conv.shape, values);
                               }),
            limit_of(Act::kF32));
}

TEST(PlantedFaults, SlightlyWrongDecayFails) {
  if (!has(Act::kF32)) GTEST_SKIP() << "this device has bf16 alone";
  EXPECT_GT(changed_difference("hybrid-d-dim256-one-to-four", Act::kF32,
                               [](Checkpoint& c) { scale(c, "model.layers.0.linear_attn.A_log", 1.1f); }),
            limit_of(Act::kF32));
}

// The same weights in GGUF's names, norms and order of value heads (model-spec 1.10) give the same golden.
class HybridGguf : public testing::TestWithParam<std::string> {};

TEST_P(HybridGguf, AgreesWithTheGoldenOfTheFolder) {
  const Golden golden = read_golden(golden_folder(GetParam()));
  const TempFolder folder;
  const auto path = folder.write("hybrid.gguf", hybrid_gguf(Checkpoint::read(golden.folder), {}).build());
  const auto loaded = load_golden(path, finest());
  ASSERT_NE(loaded, nullptr);
  EXPECT_LE(largest_difference(scored(*loaded, golden.ids), golden.logits), limit_of(finest()));
  if (!has(Act::kF32)) return;
  EXPECT_EQ(greedy_reply(load_golden(path, Act::kF32), golden.ids, golden.greedy.size()), golden.greedy);
}

INSTANTIATE_TEST_SUITE_P(Goldens, HybridGguf,
                         testing::Values("hybrid-b-dim64-equal-heads", "hybrid-c-dim128-tied",
                                         "hybrid-d-dim256-one-to-four", "hybrid-e-unequal-dims",
                                         "hybrid-f-multimodal-form", "hybrid-g-yarn"),
                         [](const auto& one) { return test_name(one.param); });

// Heads left in the folder's order are seen: the test above tells the orders apart.
TEST(HybridGgufOrder, GroupedHeadsFail) {
  const Golden golden = read_golden(golden_folder("hybrid-e-unequal-dims"));
  const TempFolder folder;
  HybridGgufFaults faults;
  faults.grouped_heads = true;
  const auto path = folder.write("hybrid.gguf", hybrid_gguf(Checkpoint::read(golden.folder), faults).build());
  const auto loaded = load_golden(path, finest());
  ASSERT_NE(loaded, nullptr);
  EXPECT_GT(largest_difference(scored(*loaded, golden.ids), golden.logits), limit_of(finest()));
}

}  // namespace
}  // namespace steadfast::test
