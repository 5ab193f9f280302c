// Logits by score(), replies by the engine itself.
#include "golden_compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>

#include "base/config.h"
#include "engine/engine.h"
#include "engine/score.h"
#include "model/config.h"
#include "support/npy.h"

namespace steadfast::test {

Golden read_golden(const std::filesystem::path& folder) {
  Golden golden;
  golden.folder = folder;
  const auto json = read_json_file(folder / "golden.json");
  auto logits = read_npy(folder / "logits.npy");
  EXPECT_TRUE(json && logits) << json.message() << logits.message();
  if (!json || !logits) return golden;
  golden.ids = (*json)["ids"].get<std::vector<TokenId>>();
  golden.greedy = (*json)["greedy"].get<std::vector<TokenId>>();
  EXPECT_EQ(logits->rows, golden.ids.size());
  golden.logits = std::move(logits->values);
  return golden;
}

bool has(Act act) { return act == Act::kBF16 || config().device.value_or("cpu") == "cpu"; }

std::unique_ptr<LoadedModel> load_golden(const std::filesystem::path& path, Act act) {
  LoadOptions options;
  options.threads = 2;
  options.act = act;
  options.device = config().device.value_or("cpu");
  auto loaded = load_model(path, options);
  EXPECT_TRUE(loaded.is_ok()) << loaded.message();
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
  EXPECT_TRUE(status.is_ok()) << status.message();
  return logits;
}

std::vector<TokenId> greedy_reply(std::unique_ptr<LoadedModel> loaded, const std::vector<TokenId>& prompt,
                                  std::size_t count) {
  auto engine = Engine::create(std::move(loaded), {});
  EXPECT_TRUE(engine.is_ok()) << engine.message();
  if (!engine) return {};
  Request request;
  request.prompt = prompt;
  request.sampling.temperature = 0;
  request.max_tokens = static_cast<int>(count);
  request.ignore_eos = true;
  std::vector<TokenId> ids;
  std::promise<ReplyEnd> ended;
  ReplyHandler handler;
  handler.on_piece = [&](const ReplyPiece& piece) { ids.insert(ids.end(), piece.ids.begin(), piece.ids.end()); };
  handler.on_end = [&](const ReplyEnd& end) { ended.set_value(end); };
  const auto handle = (*engine)->submit(request, handler);
  EXPECT_TRUE(handle.is_ok()) << handle.message();
  if (handle) {
    EXPECT_EQ(ended.get_future().get().reason, FinishReason::kLength);
  }
  return ids;
}

double largest_difference(const std::vector<float>& got, const std::vector<float>& golden) {
  EXPECT_EQ(got.size(), golden.size());
  if (got.size() != golden.size()) return INFINITY;
  double sum = 0, squares = 0, largest = 0;
  for (const float x : golden) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const auto count = static_cast<double>(golden.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(got[i]) - static_cast<double>(golden[i]));
    if (!(difference <= largest)) largest = difference;  // NaN stays
  }
  return largest / std::sqrt(squares / count - sum / count * (sum / count));
}

}  // namespace steadfast::test
