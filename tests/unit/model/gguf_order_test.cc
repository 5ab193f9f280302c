// GGUF llama files hold q and k rows in another order (model-spec 4.4): the same model as a folder and as GGUF gives
// the same logits to the bit, with and without biases.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/score.h"
#include "support/tiny_model.h"

namespace steadfast {
namespace {

using test::TempFolder;
using test::TinyModel;

std::vector<float> logits_of(const std::filesystem::path& path, Act act) {
  LoadOptions options;
  options.threads = 2;
  options.act = act;
  const auto loaded = load_model(path, options);
  EXPECT_TRUE(loaded) << loaded.message();
  if (!loaded) return {};
  const std::vector<TokenId> ids = {5, 17, 95, 0, 33, 33, 8, 64, 71, 2, 90, 11, 12, 13, 14, 15, 16, 3, 44, 50};
  std::vector<float> logits;
  const auto status = score(**loaded, ids, 7, [&](int, int rows, const float* part) {
    logits.insert(logits.end(), part, part + rows * (*loaded)->card.vocab_size);
    return Status::ok();
  });
  EXPECT_TRUE(status) << status.message();
  return logits;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(GgufOrder, FolderAndGgufGiveTheSameBits) {
  for (const bool biases : {false, true}) {
    const TinyModel model = TinyModel::random(11, biases);
    const TempFolder folder, file;
    model.write(folder);
    const auto path = file.write("tiny.gguf", model.gguf().build());
    for (const Act act : {Act::kF32, Act::kBF16, Act::kInt8})
      EXPECT_TRUE(same_bits(logits_of(folder.path(), act), logits_of(path, act)))
          << to_string(act) << (biases ? ", biases" : "");
  }
}

// Rows that were not permuted give other logits: the test above tells the orders apart.
TEST(GgufOrder, TheOrderMatters) {
  TinyModel model = TinyModel::random(12);
  const TempFolder folder, file;
  model.write(folder);
  auto& query = model.tensors["model.layers.0.self_attn.q_proj.weight"].values;
  for (std::size_t i = 0; i < 64; ++i) std::swap(query[64 + i], query[2 * 64 + i]);
  const auto path = file.write("tiny.gguf", model.gguf().build());
  EXPECT_FALSE(same_bits(logits_of(folder.path(), Act::kF32), logits_of(path, Act::kF32)));
}

TEST(Score, RefusesWhatItCannotScore) {
  const TempFolder folder;
  TinyModel::random(13).write(folder);
  LoadOptions options;
  options.threads = 1;
  const auto loaded = load_model(folder.path(), options);
  ASSERT_TRUE(loaded) << loaded.message();
  const auto message = [&](const std::vector<TokenId>& ids) {
    return score(**loaded, ids, 8, [](int, int, const float*) { return Status::ok(); }).message();
  };
  EXPECT_NE(message({}).find("empty"), std::string::npos);
  EXPECT_NE(message({1, 96}).find("id 96"), std::string::npos);
  EXPECT_NE(message({-1}).find("id -1"), std::string::npos);
  EXPECT_NE(message(std::vector<TokenId>(129, 1)).find("129 tokens"), std::string::npos);
  EXPECT_EQ(message(std::vector<TokenId>(128, 1)), "ok");
  const auto stopped = score(**loaded, std::vector<TokenId>{1, 2}, 8,
                             [](int, int, const float*) { return Status::error("the disk is full"); });
  EXPECT_EQ(stopped.message(), "the disk is full");
}

TEST(NegativeLogLikelihood, IsTheLogSoftmaxTurned) {
  const std::vector<float> logits = {1, 2, 3};
  EXPECT_NEAR(negative_log_likelihood(logits, 2), 0.4076059644443803, 1e-12);
  EXPECT_NEAR(negative_log_likelihood(logits, 0), 2.4076059644443803, 1e-12);
}

}  // namespace
}  // namespace steadfast
