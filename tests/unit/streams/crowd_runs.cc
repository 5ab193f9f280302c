// Pools are small, prompts begin alike: pages are shared, evicted and taken away all the time.
#include "crowd_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crowd.h"
#include "scenario.h"
#include "support/tiny_model.h"

namespace steadfast::test {
namespace {

using ::testing::IsEmpty;

Request request_at(int i, int vocab, int longest) {
  std::vector<TokenId> prompt;
  const int shared = 16 * (i % 4), own = 1 + i * 7 % longest;
  for (int k = 0; k < shared; ++k) prompt.push_back((3 * k + i % 3) % vocab);
  for (int k = 0; k < own; ++k) prompt.push_back((i + k * k) % vocab);
  Request request = request_of(std::move(prompt), 2 + i % 11, static_cast<std::uint64_t>(i), i % 5 == 0);
  if (i % 2 == 0) request.sampling.temperature = 0;
  return request;
}

}  // namespace

void expect_crowd_on_fake(FakeKind kind, bool paged, int streams, int parts) {
  FakeModel model = fake_model(kind, 256);
  const auto ledger = model.ledger;
  auto* backend = model.backend;
  auto made =
      Engine::create(std::move(model.loaded),
                     {.streams = 8, .paged = paged, .page = 16, .pool_pages = paged ? 30 : 0, .row_budget = 64});
  ASSERT_TRUE(made) << made.message();
  Engine& engine = **made;
  backend->watch(engine.pool());
  std::int64_t first = 0;
  for (int part = 0; part < parts; ++part) {
    const CrowdResult result = run_crowd(
        engine, {.streams = streams,
                 .request = [&](int i) { return request_at(part * streams + i, kFakeVocab, 60); },
                 .alone = [&](int, const Request& request) { return fake_reply(kind, request, request.max_tokens); }});
    EXPECT_EQ(result.ended, streams);
    EXPECT_EQ(result.failed, 0) << result.first_error;
    EXPECT_EQ(result.wrong, 0);
    EXPECT_GT(result.cancelled, 0);
    EXPECT_THAT(ledger->sentences(), IsEmpty());
    EXPECT_THAT(memory_complaints(engine, *ledger), IsEmpty());
    if (part == 0) first = ledger->live_bytes();
    // Kept states come and go under their budget; all else is as it was.
    EXPECT_LE(ledger->live_bytes(), first + static_cast<std::int64_t>(engine.memory().kept_states));
  }
  made->reset();
  EXPECT_EQ(ledger->live_bytes(), 0);
}

void expect_crowd_on_real(bool paged, int streams, int parts) {
  const TempFolder folder;
  TinyModel::random(21).write(folder);
  LoadOptions load;
  load.threads = 1;
  const EngineOptions options{.streams = 6, .paged = paged, .page = 16, .pool_pages = paged ? 16 : 0, .row_budget = 64};
  const auto engine_of = [&](const EngineOptions& of) {
    auto loaded = load_model(folder.path(), load);
    CHECK(loaded.is_ok(), "{}", loaded.message());
    auto engine = Engine::create(std::move(*loaded), of);
    CHECK(engine.is_ok(), "{}", engine.message());
    return std::move(*engine);
  };
  const auto request = [](int i) { return request_at(i, 96, 40); };
  constexpr int kCompared = 12;
  std::vector<std::vector<TokenId>> alone(kCompared);
  {
    const auto single = engine_of({});
    for (int i = 0; i < kCompared; ++i) {
      auto& ids = alone[static_cast<std::size_t>(i)];
      Request asked = request(i);
      asked.background = false;
      std::mutex mutex;
      std::condition_variable changed;
      bool done = false;
      ASSERT_TRUE(single->submit(
          asked, {[&](const ReplyPiece& piece) { ids.insert(ids.end(), piece.ids.begin(), piece.ids.end()); },
                  [&](const ReplyEnd&) {
                    const std::lock_guard lock(mutex);
                    done = true;
                    changed.notify_all();
                  }}));
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return done; });
    }
  }
  const auto engine = engine_of(options);
  for (int part = 0; part < parts; ++part) {
    const CrowdResult result =
        run_crowd(*engine, {.streams = streams, .open = 40, .request = request, .alone = [&](int i, const Request&) {
                              return i < kCompared ? alone[static_cast<std::size_t>(i)] : std::vector<TokenId>();
                            }});
    EXPECT_EQ(result.ended, streams);
    EXPECT_EQ(result.failed, 0) << result.first_error;
    EXPECT_EQ(result.wrong, 0);
    EXPECT_GT(result.cancelled, 0);
    if (!paged) continue;
    EXPECT_EQ(engine->pool()->free_pages() + engine->prefixes()->kept(), engine->pool()->pages());
    EXPECT_EQ(engine->prefixes()->evictable(), engine->prefixes()->kept());
  }
}

}  // namespace steadfast::test
