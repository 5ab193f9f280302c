// The row law where prompts have an arithmetic of their own (--prompt-act): a row's bits are a function of its stream's
// tokens and roles 0..p. Rows of one stream, of many, pages, pieces, kept prefixes, streams set aside.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "law_models.h"
#include "verify/redraw.h"
#include "verify/row_run.h"

namespace steadfast::test {
namespace {

constexpr int kLength = 90, kPromptLength = 37;

struct RoleCase {
  const char* name;
  const char* path;
  Act act, prompt_act;
};

class RoleLaw : public testing::TestWithParam<RoleCase> {
 protected:
  static std::unique_ptr<LoadedModel> open(Act act, std::optional<Act> prompt_act) {
    LoadOptions options;
    options.act = act;
    options.prompt_act = prompt_act;
    options.threads = 2;
    options.kv_dtype = DType::kBF16;
    auto loaded = load_model(std::filesystem::path(STEADFAST_SOURCE_DIR) / "tests" / GetParam().path, options);
    EXPECT_TRUE(loaded.is_ok()) << loaded.message();
    return std::move(*loaded);
  }
  static std::unique_ptr<LoadedModel> open() { return open(GetParam().act, GetParam().prompt_act); }
  static StreamScript script(const LoadedModel& loaded, int length, int prompt, std::vector<int> steps,
                             std::uint64_t seed) {
    StreamScript made;
    made.ids = some_ids(loaded, length, seed);
    made.prompt = prompt;
    made.steps = std::move(steps);
    return made;
  }
  static std::vector<std::vector<float>> rows(const LoadedModel& loaded, std::span<const StreamScript> scripts,
                                              const Placement& placement = {}) {
    auto taken = run_rows(loaded, scripts, placement, 1);
    EXPECT_TRUE(taken.is_ok()) << taken.message();
    std::vector<std::vector<float>> logits;
    for (TakenRows& each : *taken) logits.push_back(std::move(each.logits));
    return logits;
  }
  static std::unique_ptr<Engine> engine(EngineOptions options) {
    options.row_budget = 48;
    return std::move(Engine::create(open(), options)).value();
  }
  static std::vector<Reply> asked(Engine& engine, std::span<const Request> requests) {
    auto replies = ask(engine, requests, Asking{});
    EXPECT_TRUE(replies.is_ok()) << replies.message();
    return std::move(*replies);
  }
  static std::vector<Reply> cold(std::span<const Request> requests) {
    return asked(*engine({.streams = 1, .prefixes = false}), requests);
  }
  static std::vector<Request> requests(const LoadedModel& loaded) {
    std::vector<Request> all;
    for (int i = 0; i < 5; ++i) {
      Request request;
      request.prompt = some_ids(loaded, 5 + 17 * i, 10 + static_cast<std::uint64_t>(i));
      request.max_tokens = 20 + i;
      request.ignore_eos = true;
      request.top_logprobs = 0;
      request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
      request.sampling.seed = 1000 + static_cast<std::uint64_t>(i);
      all.push_back(std::move(request));
    }
    return all;
  }
  static void expect_equal(std::span<const Reply> got, std::span<const Reply> want, const char* what) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].ids, want[i].ids) << what << ", reply " << i;
      EXPECT_EQ(got[i].logprobs, want[i].logprobs) << what << ", reply " << i;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Models, RoleLaw,
                         testing::Values(RoleCase{"hybrid", "fixture/model", Act::kBF16, Act::kInt8},
                                         RoleCase{"dense", "golden/mlx-qwen3-f16", Act::kBF16, Act::kInt8},
                                         RoleCase{"dense_int8", "golden/mlx-qwen3-f16", Act::kInt8, Act::kF32}),
                         [](const auto& entry) { return std::string(entry.param.name); });

// Prompt rows are those of --act set to the prompts' arithmetic, reply rows are neither's.
TEST_P(RoleLaw, EachRoleHasItsArithmetic) {
  const auto loaded = open(), prompts = open(GetParam().prompt_act, std::nullopt),
             replies = open(GetParam().act, std::nullopt);
  const StreamScript one[] = {script(*loaded, kLength, kPromptLength, {kLength}, 3)};
  const StreamScript all_reply[] = {script(*loaded, kLength, 0, {kLength}, 3)};
  const auto width = static_cast<std::size_t>(loaded->card.vocab_size);
  const auto mixed = rows(*loaded, one)[0], as_replies = rows(*replies, one)[0], as_prompts = rows(*prompts, one)[0];
  EXPECT_EQ(first_difference(as_replies, rows(*loaded, all_reply)[0], width), "equal");
  const auto part = [&](const std::vector<float>& from, int first, int last) {
    return std::span(from).subspan(width * static_cast<std::size_t>(first),
                                   width * static_cast<std::size_t>(last - first));
  };
  EXPECT_NE(first_difference(part(mixed, 0, kPromptLength), part(as_replies, 0, kPromptLength), width), "equal");
  for (const std::vector<float>* other : {&as_replies, &as_prompts})
    EXPECT_EQ(compare_rows(part(mixed, kPromptLength, kLength), part(*other, kPromptLength, kLength), width).rows,
              static_cast<std::size_t>(kLength - kPromptLength))
        << "a reply reads what its prompt left";
  EXPECT_EQ(loaded->card.arithmetic.prompt_act, to_string(GetParam().prompt_act));
}

TEST_P(RoleLaw, PiecesStreamsAndPages) {
  const auto loaded = open();
  const auto width = static_cast<std::size_t>(loaded->card.vocab_size);
  const std::vector<StreamScript> scripts = {script(*loaded, kLength, kPromptLength, {13, 1, 40}, 4),
                                             script(*loaded, 33, 1, {1}, 5), script(*loaded, 50, 50, {7}, 6),
                                             script(*loaded, 61, 20, {20, 1, 1, 3}, 7)};
  std::vector<std::vector<float>> alone;
  for (StreamScript one : scripts) {
    one.steps = {static_cast<int>(one.ids.size())};
    alone.push_back(rows(*loaded, {&one, 1})[0]);
    for (const int step : {1, 7, 64}) {
      one.steps = {step};
      EXPECT_EQ(first_difference(alone.back(), rows(*loaded, {&one, 1})[0], width), "equal") << "pieces of " << step;
    }
  }
  for (const int page : {0, 16, 256}) {
    const auto together = rows(*loaded, scripts, {page, true});
    for (std::size_t s = 0; s < scripts.size(); ++s)
      EXPECT_EQ(first_difference(alone[s], together[s], width), "equal") << "stream " << s << ", page " << page;
  }
}

TEST_P(RoleLaw, RepliesTogetherAndFromRowsOfOnePiece) {
  const auto loaded = open();
  const auto all = requests(*loaded);
  const auto alone = cold(all);
  expect_equal(asked(*engine({.streams = 5}), all), alone, "together");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto again = redraw(*loaded, all[i], alone[i], 64);
    ASSERT_TRUE(again.is_ok()) << again.message();
    expect_equal({&*again, 1}, {&alone[i], 1}, "redrawn");
  }
}

// Each turn's prompt holds the reply before it: rows that were a reply's are a prompt's now, and are computed again.
TEST_P(RoleLaw, AGrowingChatReusesPromptRowsAlone) {
  const auto loaded = open();
  for (const bool paged : {true, false}) {
    const auto warm = engine({.streams = 2, .paged = paged, .page = 16, .pool_pages = paged ? 40 : 0});
    Request request = requests(*loaded)[3];
    std::uint64_t reused = 0;
    for (int turn = 0; turn < 3; ++turn) {
      const auto want = cold({&request, 1});
      expect_equal(asked(*warm, {&request, 1}), want, "cold prefix");
      expect_equal(asked(*warm, {&request, 1}), want, "a resend");
      while (warm->counters().streams_running > 0) std::this_thread::yield();
      const std::uint64_t now = warm->counters().prompt_tokens_reused;
      if (paged || loaded->model->config().recurrent.empty())  // in a window a hybrid's states are kept too seldom
        EXPECT_GT(now, reused) << "turn " << turn;
      reused = now;
      request.prompt.insert(request.prompt.end(), want[0].ids.begin(), want[0].ids.end());
      request.prompt.push_back(5);
    }
  }
}

TEST_P(RoleLaw, SetAsideAndNever) {
  const auto loaded = open();
  auto all = requests(*loaded);
  for (Request& request : all) request.prompt.resize(std::min<std::size_t>(request.prompt.size(), 13));
  for (Request& request : all) request.max_tokens = 45;
  const auto want = cold(all);
  for (const bool prefixes : {true, false}) {
    const auto short_of_pages =
        engine({.streams = 5, .paged = true, .page = 16, .prefixes = prefixes, .pool_pages = 8});
    expect_equal(asked(*short_of_pages, all), want, "in a pool too small for all");
    EXPECT_GT(short_of_pages->counters().streams_set_aside, 0u);
  }
}

}  // namespace
}  // namespace steadfast::test
