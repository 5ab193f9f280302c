// Whole models against logits and greedy replies that other programs made (tools/goldens says how):
// each folder here with a golden.json of a family that this build runs. A planted fault must make the comparison fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "golden_compare.h"
#include "model/config.h"
#include "model/families/family.h"
#include "support/checkpoint.h"

namespace steadfast::test {
namespace {

namespace fs = std::filesystem;

// Largest |difference| in units of the golden logits' standard deviation. f32 carries the order of sums alone; the
// others their rounding: bf16 activations, and int8 ones where the weights are quantised. A recurrence keeps what was
// rounded. About twice what was measured.
double limit_of(Act act, bool quantised, bool recurrent) {
  if (act == Act::kF32) return 2e-3;
  if (act == Act::kInt8 && quantised) return recurrent ? 1.0 : 0.3;
  return act == Act::kBF16 && recurrent ? 0.4 : 0.1;
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(golden_folder())) {
    if (!fs::exists(entry.path() / "golden.json") || !fs::exists(entry.path() / "logits.npy")) continue;
    const auto config = read_json_file(entry.path() / "config.json");
    if (config && find_family(config->value("model_type", "")) != nullptr)
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class GoldenLogits : public testing::TestWithParam<std::tuple<std::string, Act>> {};

TEST_P(GoldenLogits, AreWithinTheLimit) {
  const auto& [name, act] = GetParam();
  if (!has(act)) GTEST_SKIP() << "this device has bf16 alone";
  const Golden golden = read_golden(golden_folder(name));
  const auto loaded = load_golden(golden.folder, act);
  ASSERT_NE(loaded, nullptr);
  const double largest = largest_difference(scored(*loaded, golden.ids), golden.logits);
  std::cout << "largest difference: " << largest << " standard deviations\n";
  EXPECT_LE(largest, limit_of(act, !loaded->model->config().quantization.is_null(),
                              loaded->model->config().recurrent_layers() > 0));
  EXPECT_GT(largest, 0) << "a comparison of the file with itself";
}

// Only float32 arithmetic promises another program's tokens.
class GoldenGreedy : public testing::TestWithParam<std::string> {};

TEST_P(GoldenGreedy, ReplyIsTheSame) {
  if (!has(Act::kF32)) GTEST_SKIP() << "this device has bf16 alone";
  const Golden golden = read_golden(golden_folder(GetParam()));
  auto loaded = load_golden(golden.folder, Act::kF32);
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(greedy_reply(std::move(loaded), golden.ids, golden.greedy.size()), golden.greedy);
}

std::string test_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenLogits,
                         testing::Combine(testing::ValuesIn(golden_names()),
                                          testing::Values(Act::kF32, Act::kBF16, Act::kInt8)),
                         [](const auto& one) {
                           return test_name(std::get<0>(one.param) + "_" + to_string(std::get<1>(one.param)));
                         });
INSTANTIATE_TEST_SUITE_P(Models, GoldenGreedy, testing::ValuesIn(golden_names()),
                         [](const auto& one) { return test_name(one.param); });

TEST(GoldenModels, AreThere) {
  const auto names = golden_names();
  for (const char* name : {"llama-a", "qwen2-a", "qwen3-a"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  const auto of = [&](const char* kind) {
    return std::count_if(names.begin(), names.end(),
                         [kind](const std::string& name) { return name.rfind(kind, 0) == 0; });
  };
  EXPECT_EQ(of("dense-"), 6);
  EXPECT_EQ(of("hybrid-"), 6);
  EXPECT_EQ(of("mlx-"), 3);
}

// One bf16 weight of the second layer's down_proj, in a copy of the folder, becomes 2.
TEST(GoldenModels, OneWrongWeightIsSeenInEveryArithmetic) {
  const Golden golden = read_golden(golden_folder("llama-a"));
  std::string weights = read_text(golden.folder / "model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, weights.data(), sizeof header);
  const auto json = nlohmann::json::parse(weights.substr(8, header));
  const auto& tensor = json.at("model.layers.1.mlp.down_proj.weight");
  ASSERT_EQ(tensor.at("dtype"), "BF16");
  const std::uint16_t two = f32_to_bf16(2.0f);
  std::memcpy(weights.data() + 8 + header + tensor.at("data_offsets")[0].get<std::size_t>() + 2 * 777, &two,
              sizeof two);
  const TempFolder copy;
  copy.write("config.json", read_text(golden.folder / "config.json"));
  copy.write("model.safetensors", weights);
  for (const Act act : {Act::kF32, Act::kBF16, Act::kInt8}) {
    if (!has(act)) continue;
    const auto loaded = load_golden(copy.path(), act);
    ASSERT_NE(loaded, nullptr);
    EXPECT_GT(largest_difference(scored(*loaded, golden.ids), golden.logits), limit_of(act, false, false))
        << to_string(act);
  }
}

}  // namespace
}  // namespace steadfast::test
