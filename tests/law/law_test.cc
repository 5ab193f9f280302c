// The row law: a row's bits are a function of its stream's own tokens. Each test is one row of design.md's table.
#include <gtest/gtest.h>

#include <bit>
#include <thread>

#include "backend/cpu/kernels.h"
#include "law_models.h"
#include "rows/draw.h"

namespace steadfast::test {
namespace {

constexpr int kPrompt = 90;  // several blocks of 16 positions, no multiple of one

struct Case {
  LawModel model;
  Act act;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& model : law_models()) {
    if (on_card()) {
      all.push_back({model, Act::kBF16});
      continue;
    }
    for (const Act act : {Act::kInt8, Act::kF32, Act::kBF16})
      if (model.name != "smollm2" || act == Act::kInt8)
        all.push_back({model, act});  // a minute an arithmetic: the default one
  }
  return all;
}

class RowLaw : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<LoadedModel> open(int threads = 2, const std::string& isa = "") {
    return load(GetParam().model, {GetParam().act, threads, isa, std::nullopt});
  }
  static std::size_t vocab(const LoadedModel& loaded) { return static_cast<std::size_t>(loaded.card.vocab_size); }
};

INSTANTIATE_TEST_SUITE_P(Models, RowLaw, testing::ValuesIn(cases()), [](const auto& entry) {
  std::string name = entry.param.model.name + "_" + to_string(entry.param.act);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

TEST_P(RowLaw, AnyNumberOfThreads) {
  const auto one = open(1);
  const auto ids = some_ids(*one, kPrompt, 1);
  const auto expected = scored(*one, ids, 64);
  for (const int threads : {2, 4})
    EXPECT_EQ(first_difference(expected, scored(*open(threads), ids, 64), vocab(*one)), "equal") << threads;
}

TEST_P(RowLaw, AnyInstructionSet) {
  if (on_card()) GTEST_SKIP() << "a card has one instruction set";
  const auto scalar = open(2, "scalar");
  const auto ids = some_ids(*scalar, 24, 2);
  const auto expected = scored(*scalar, ids, 24);
  for (const char* isa : {"avx2", "avx512"}) {
    if (cpu::select_kernels(isa) == nullptr) continue;  // this machine lacks it
    EXPECT_EQ(first_difference(expected, scored(*open(2, isa), ids, 24), vocab(*scalar)), "equal") << isa;
  }
}

TEST_P(RowLaw, PromptInPieces) {
  const auto loaded = open();
  const auto ids = some_ids(*loaded, kPrompt, 3);
  const auto whole = scored(*loaded, ids, kPrompt);
  for (const int chunk : {1, 7, 64})
    EXPECT_EQ(first_difference(whole, scored(*loaded, ids, chunk), vocab(*loaded)), "equal") << chunk;
}

std::vector<std::vector<float>> together(const LoadedModel& loaded, const std::vector<std::vector<TokenId>>& ids,
                                         const std::vector<int>& steps, int page = 0) {
  auto logits = logits_together(loaded, ids, steps, page);
  EXPECT_TRUE(logits.is_ok()) << logits.message();
  return std::move(logits).value();
}

TEST_P(RowLaw, StreamsTogether) {
  const auto loaded = open();
  const std::vector<std::vector<TokenId>> ids = {some_ids(*loaded, kPrompt, 4), some_ids(*loaded, 33, 5),
                                                 some_ids(*loaded, 50, 6)};
  const auto mixed = together(*loaded, ids, {13, 1, 3});
  for (std::size_t s = 0; s < ids.size(); ++s)
    EXPECT_EQ(first_difference(scored(*loaded, ids[s], 200), mixed[s], vocab(*loaded)), "equal") << "stream " << s;
}

TEST_P(RowLaw, PagesAsWhole) {
  for (const auto kv : {DType::kBF16, DType::kF8E4M3, DType::kF32}) {
    if (on_card() && kv == DType::kF32) continue;  // it stores the other two
    const auto loaded = load(GetParam().model, {GetParam().act, 2, "", kv});
    const std::vector<std::vector<TokenId>> ids = {some_ids(*loaded, kPrompt, 4), some_ids(*loaded, 33, 5)};
    const auto whole = together(*loaded, ids, {13, 1});
    for (const int page : {16, 32, 256}) {
      const auto paged = together(*loaded, ids, {13, 1}, page);
      for (std::size_t s = 0; s < ids.size(); ++s)
        EXPECT_EQ(first_difference(whole[s], paged[s], vocab(*loaded)), "equal")
            << "stream " << s << " on pages of " << page;
    }
  }
}

std::unique_ptr<Engine> make_engine(const Case& model, EngineOptions options) {
  options.row_budget = 48;
  return std::move(Engine::create(load(model.model, {model.act, 2, "", std::nullopt}), options)).value();
}

std::vector<std::vector<TokenId>> asked(Engine& engine, const std::vector<Request>& requests) {
  auto ids = ask(engine, requests);
  EXPECT_TRUE(ids.is_ok()) << ids.message();
  return std::move(ids).value();
}

std::vector<std::vector<TokenId>> replies(const Case& model, int streams, const std::vector<Request>& requests) {
  return asked(*make_engine(model, {.streams = streams}), requests);
}

// Each computed from nothing.
std::vector<std::vector<TokenId>> cold_replies(const Case& model, const std::vector<Request>& requests) {
  return asked(*make_engine(model, {.streams = 1, .prefixes = false}), requests);
}

std::vector<Request> some_requests(const LoadedModel& loaded, float temperature) {
  std::vector<Request> requests;
  for (int i = 0; i < 5; ++i) {
    Request request;
    request.prompt = some_ids(loaded, 5 + 17 * i, 10 + static_cast<std::uint64_t>(i));
    request.max_tokens = 12;
    request.ignore_eos = true;
    request.sampling.temperature = temperature;
    request.sampling.top_p = 0.95f;
    request.sampling.seed = 1000 + static_cast<std::uint64_t>(i);
    requests.push_back(std::move(request));
  }
  return requests;
}

TEST_P(RowLaw, RepliesTogetherAndAlone) {
  const auto loaded = open();
  for (const float temperature : {0.0f, 0.8f}) {
    const auto requests = some_requests(*loaded, temperature);
    const auto crowd = replies(GetParam(), 5, requests), queue = replies(GetParam(), 1, requests);
    EXPECT_EQ(crowd, queue) << "temperature " << temperature;
    EXPECT_EQ(crowd[2], replies(GetParam(), 3, {requests[2]})[0]) << "temperature " << temperature;
  }
}

// Kept prefixes, shared pages, a pool too small for all: no reply changes, no page is lost.
TEST_P(RowLaw, WarmAsColdAndSetAside) {
  constexpr int kPage = 16;
  const auto loaded = open();
  auto requests = some_requests(*loaded, 0.8f);
  for (const int length : {kPage - 1, kPage, kPage + 1, 3 * kPage}) {  // other endings behind a shared beginning
    Request request = requests[4];
    request.prompt.resize(static_cast<std::size_t>(length));
    request.prompt.push_back(7);
    requests.push_back(std::move(request));
  }
  for (std::size_t i = 0; i < 3; ++i) requests[i].max_tokens = 40;  // they outgrow what admission holds free for them
  const auto cold = cold_replies(GetParam(), requests);
  const auto engine = make_engine(GetParam(), {.streams = 5, .paged = true, .page = kPage, .pool_pages = 8});
  EXPECT_EQ(asked(*engine, requests), cold) << "first time";
  EXPECT_EQ(asked(*engine, requests), cold) << "again";
  for (std::size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(asked(*engine, {requests[i]})[0], cold[i]) << "request " << i << " alone";
  while (engine->counters().streams_running > 0) std::this_thread::yield();  // the last stream gives its pages back
  EXPECT_GT(engine->counters().streams_set_aside, 0u);
  EXPECT_GT(engine->counters().prompt_tokens_reused, 0u);
  EXPECT_EQ(engine->pool()->free_pages() + engine->prefixes()->kept(), engine->pool()->pages());
}

// Windows keep prefixes too: a resend, a shared beginning, a chat that grows by its own reply.
TEST_P(RowLaw, WarmWindowsAsCold) {
  const auto loaded = open();
  auto requests = some_requests(*loaded, 0.8f);
  Request shared = requests[4];
  shared.prompt.resize(40);
  shared.prompt.push_back(7);
  requests.push_back(shared);
  const auto first = cold_replies(GetParam(), requests);
  Request chat = requests[3];
  chat.prompt.insert(chat.prompt.end(), first[3].begin(), first[3].end());
  chat.prompt.push_back(5);
  requests.push_back(chat);
  const auto cold = cold_replies(GetParam(), requests);
  const auto engine = make_engine(GetParam(), {.streams = 3});
  for (int time = 0; time < 2; ++time)
    for (std::size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(asked(*engine, {requests[i]})[0], cold[i]) << "request " << i << ", time " << time;
  EXPECT_EQ(asked(*engine, requests), cold) << "together";
  EXPECT_GT(engine->counters().prompt_tokens_reused, chat.prompt.size());
}

TEST_P(RowLaw, ReplyRowsAsPromptRows) {
  const auto loaded = open();
  for (const float temperature : {0.0f, 0.8f}) {
    const auto request = some_requests(*loaded, temperature)[3];
    const auto reply = replies(GetParam(), 1, {request})[0];
    std::vector<TokenId> all = request.prompt;
    all.insert(all.end(), reply.begin(), reply.end());
    auto logits = scored(*loaded, all, 64);
    const std::size_t width = vocab(*loaded),
                      drawable = loaded->tokenizer ? std::min(width, loaded->tokenizer->vocab_size()) : width;
    DrawScratch scratch;
    for (std::size_t i = 0; i < reply.size(); ++i) {
      const std::size_t position = request.prompt.size() + i;
      const auto row = std::span(logits).subspan((position - 1) * width, drawable);
      EXPECT_EQ(draw(row, request.sampling, static_cast<std::int64_t>(position), scratch), reply[i])
          << "reply token " << i;
    }
  }
}

// After n rows of which k stay, the stream goes on as if the n - k others had never run.
TEST_P(RowLaw, RolledBackRows) {
  const auto loaded = open();
  const Model& model = *loaded->model;
  const auto ids = some_ids(*loaded, 40, 7), wrong = some_ids(*loaded, 6, 8);
  const auto expected = scored(*loaded, ids, 64);
  const auto width = vocab(*loaded);
  auto workspace = std::move(Workspace::create(model.backend(), model.config(), 64)).value();
  for (const int kept : {0, 1, 3, 6}) {
    auto state = std::move(StreamState::create(model.backend(), model.cache_shape(loaded->kv_dtype), 64)).value();
    const auto run = [&](int first, const TokenId* tokens, int count, float* last) {
      Round round;
      round.add(*state, first, tokens, count);
      round.logit_rows = {count - 1};
      ASSERT_TRUE(model.forward(round, *workspace).is_ok());
      EXPECT_TRUE(model.head(*workspace, 0, Matrix(last, 1, static_cast<int>(width))));
    };
    std::vector<float> last(width);
    run(0, ids.data(), 20, last.data());
    ASSERT_TRUE(state->record(model.backend(), 6).is_ok());
    std::vector<TokenId> draft(ids.begin() + 20, ids.begin() + 20 + kept);
    draft.insert(draft.end(), wrong.begin() + kept, wrong.end());
    run(20, draft.data(), 4, last.data());  // in two rounds: a record spans rounds
    run(24, draft.data() + 4, 2, last.data());
    EXPECT_EQ(state->record_position(), 20) << "positions that a roll-back's rows have";
    ASSERT_TRUE(model.roll_back(*state, kept, *workspace).is_ok());
    run(20 + kept, ids.data() + 20 + kept, 20 - kept, last.data());
    const std::vector<float> wanted(expected.end() - static_cast<std::ptrdiff_t>(width), expected.end());
    EXPECT_EQ(first_difference(wanted, last, width), "equal") << kept << " kept";
  }
}

// Controls: what must be told apart is.
TEST_P(RowLaw, FaultsAreSeen) {
  const auto loaded = open();
  auto ids = some_ids(*loaded, 20, 9);
  const auto logits = scored(*loaded, ids, 64);
  auto flipped = logits;
  flipped[flipped.size() / 2] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(flipped[flipped.size() / 2]) ^ 1u);
  EXPECT_NE(first_difference(logits, flipped, vocab(*loaded)), "equal");
  ids[3] = (ids[3] + 1) % loaded->card.vocab_size;
  EXPECT_NE(first_difference(logits, scored(*loaded, ids, 64), vocab(*loaded)), "equal");
  if (loaded->model->config().recurrent.empty()) return;
  // A stale recurrent state: the rows run again without a roll-back.
  const Model& model = *loaded->model;
  auto workspace = std::move(Workspace::create(model.backend(), model.config(), 64)).value();
  auto state = std::move(StreamState::create(model.backend(), model.cache_shape(loaded->kv_dtype), 64)).value();
  std::vector<float> first(vocab(*loaded)), again(first.size());
  for (auto* out : {&first, &again}) {
    Round round;
    round.add(*state, 0, ids.data(), 20);
    round.logit_rows = {19};
    ASSERT_TRUE(model.forward(round, *workspace).is_ok());
    ASSERT_TRUE(model.head(*workspace, 0, Matrix(out->data(), 1, static_cast<int>(first.size()))));
  }
  EXPECT_NE(first_difference(first, again, first.size()), "equal");
}

}  // namespace
}  // namespace steadfast::test
