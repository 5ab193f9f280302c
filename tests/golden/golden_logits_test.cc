// Whole models against logits and greedy replies that other programs made (the README of tools/reference says how):
// each folder here with a golden.json of a family that this build runs. A planted fault must make the comparison fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <iostream>

#include "engine/engine.h"
#include "engine/score.h"
#include "model/config.h"
#include "model/families/family.h"
#include "support/npy.h"
#include "support/temp_folder.h"

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

struct Golden {
  fs::path folder;
  std::vector<TokenId> ids, greedy;
  NpyMatrix logits;
  bool quantised = false;
};

fs::path golden_root() { return fs::path(STEADFAST_SOURCE_DIR) / "tests" / "golden"; }

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(golden_root())) {
    if (!fs::exists(entry.path() / "golden.json") || !fs::exists(entry.path() / "logits.npy")) continue;
    const auto config = read_json_file(entry.path() / "config.json");
    if (config && find_family(config->value("model_type", "")) != nullptr)
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Golden read_golden(const std::string& name) {
  Golden golden;
  golden.folder = golden_root() / name;
  const auto json = read_json_file(golden.folder / "golden.json"),
             config = read_json_file(golden.folder / "config.json");
  auto logits = read_npy(golden.folder / "logits.npy");
  EXPECT_TRUE(json && config && logits) << json.message() << config.message() << logits.message();
  golden.ids = (*json)["ids"].get<std::vector<TokenId>>();
  golden.greedy = (*json)["greedy"].get<std::vector<TokenId>>();
  golden.logits = std::move(*logits);
  golden.quantised = config->contains("quantization");
  EXPECT_EQ(golden.logits.rows, golden.ids.size());
  return golden;
}

std::unique_ptr<LoadedModel> load(const fs::path& folder, Act act) {
  LoadOptions options;
  options.threads = 2;
  options.act = act;
  auto loaded = load_model(folder, options);
  EXPECT_TRUE(loaded) << loaded.message();
  return loaded ? std::move(*loaded) : nullptr;
}

std::vector<float> scored(const LoadedModel& loaded, const std::vector<TokenId>& ids) {
  std::vector<float> logits;
  const auto vocab = static_cast<std::size_t>(loaded.card.vocab_size);
  const auto status = score(loaded, ids, 64, [&](int first, int rows, const float* part) {
    EXPECT_EQ(static_cast<std::size_t>(first) * vocab, logits.size());
    logits.insert(logits.end(), part, part + static_cast<std::size_t>(rows) * vocab);
    return Status::ok();
  });
  EXPECT_TRUE(status) << status.message();
  return logits;
}

double largest_difference(const std::vector<float>& got, const std::vector<float>& golden) {
  EXPECT_EQ(got.size(), golden.size());
  if (got.size() != golden.size()) return INFINITY;
  double sum = 0, squares = 0, largest = 0;
  for (const float x : golden) sum += x, squares += static_cast<double>(x) * static_cast<double>(x);
  const double mean = sum / static_cast<double>(golden.size());
  const double deviation = std::sqrt(squares / static_cast<double>(golden.size()) - mean * mean);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(got[i]) - static_cast<double>(golden[i]));
    if (!(difference <= largest)) largest = difference;  // NaN stays
  }
  return largest / deviation;
}

std::vector<TokenId> greedy_reply(std::unique_ptr<LoadedModel> loaded, const std::vector<TokenId>& prompt,
                                  std::size_t count) {
  auto engine = Engine::create(std::move(loaded), {});
  EXPECT_TRUE(engine) << engine.message();
  Request request;
  request.prompt = prompt;
  request.sampling.temperature = 0;
  request.max_tokens = static_cast<int>(count);
  request.ignore_eos = true;
  std::vector<TokenId> ids;
  std::promise<ReplyEnd> ended;
  const auto handle = (*engine)->submit(
      request, {[&](const ReplyPiece& piece) { ids.insert(ids.end(), piece.ids.begin(), piece.ids.end()); },
                [&](const ReplyEnd& end) { ended.set_value(end); }});
  EXPECT_TRUE(handle) << handle.message();
  if (handle) {
    EXPECT_EQ(ended.get_future().get().reason, FinishReason::kLength);
  }
  return ids;
}

class GoldenLogits : public testing::TestWithParam<std::tuple<std::string, Act>> {};

TEST_P(GoldenLogits, AreWithinTheLimit) {
  const auto& [name, act] = GetParam();
  const Golden golden = read_golden(name);
  const auto loaded = load(golden.folder, act);
  ASSERT_NE(loaded, nullptr);
  const double largest = largest_difference(scored(*loaded, golden.ids), golden.logits.values);
  std::cout << "largest difference: " << largest << " standard deviations\n";
  EXPECT_LE(largest, limit_of(act, golden.quantised, loaded->model->config().recurrent_layers() > 0));
  EXPECT_GT(largest, 0) << "a comparison of the file with itself";
}

// Only float32 arithmetic promises another program's tokens.
class GoldenGreedy : public testing::TestWithParam<std::string> {};

TEST_P(GoldenGreedy, ReplyIsTheSame) {
  const Golden golden = read_golden(GetParam());
  auto loaded = load(golden.folder, Act::kF32);
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
}

// One bf16 weight of the second layer's down_proj, in a copy of the folder, becomes 2.
TEST(GoldenModels, OneWrongWeightIsSeenInEveryArithmetic) {
  const Golden golden = read_golden("llama-a");
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
    const auto loaded = load(copy.path(), act);
    ASSERT_NE(loaded, nullptr);
    EXPECT_GT(largest_difference(scored(*loaded, golden.ids), golden.logits.values), limit_of(act, false, false))
        << to_string(act);
  }
}

}  // namespace
}  // namespace steadfast::test
