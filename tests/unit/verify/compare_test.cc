// The comparison of bits, and the plants' own ground: an untouched forwarding backend changes nothing.
#include "verify/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/temp_folder.h"
#include "support/tiny_model.h"
#include "verify/faults/forwarding_backend.h"
#include "verify/reply_run.h"
#include "verify/row_run.h"

namespace steadfast {
namespace {

TEST(CompareRows, FindsTheFirstRowAndItsDistance) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  std::vector<float> b = a;
  EXPECT_EQ(compare_rows(a, b, 2).rows, 0u);
  b[3] = 4.5f;
  b[2] = 2.75f;
  b[5] = 60;
  const RowDifference difference = compare_rows(a, b, 2);
  EXPECT_EQ(difference.rows, 2u);
  EXPECT_EQ(difference.first, 1u);
  EXPECT_EQ(difference.distance, 0.5);
  EXPECT_EQ(first_difference(a, b, 2), "2 of 3 rows differ, first at position 1, logit distance 0.5 there");
}

TEST(CompareRows, ComparesBits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {0.0f, nan}, zero = {-0.0f, nan}, number = {0.0f, 1.0f};
  EXPECT_EQ(compare_rows(a, a, 1).rows, 0u);
  EXPECT_EQ(compare_rows(a, zero, 1).rows, 1u);
  EXPECT_EQ(compare_rows(a, zero, 1).distance, 0);
  EXPECT_EQ(compare_rows(a, number, 1).first, 1u);
  EXPECT_TRUE(std::isinf(compare_rows(a, number, 1).distance));
  EXPECT_EQ(first_difference(a, std::vector<float>{0.0f}, 1), "sizes 2 and 1");
}

class Runs : public testing::Test {
 protected:
  Runs() { test::TinyModel::random(5).write(folder_); }
  std::unique_ptr<LoadedModel> open(bool wrapped = false) const {
    LoadOptions options;
    options.threads = 1;
    if (wrapped)
      options.wrap = [](std::unique_ptr<Backend> backend) {
        return std::make_unique<ForwardingBackend>(std::move(backend));
      };
    return std::move(load_model(folder_.path(), options)).value();
  }
  test::TempFolder folder_;
};

TEST_F(Runs, TakeEveryStrideAndTheLast) {
  const auto loaded = open();
  const StreamScript script{some_ids(*loaded, 20, 1), {3}, 0, 0, {}};
  auto all = run_rows(*loaded, {&script, 1}, {}, 1), some = run_rows(*loaded, {&script, 1}, {16, true}, 7);
  ASSERT_TRUE(all.is_ok() && some.is_ok());
  EXPECT_EQ(all->front().positions.size(), 20u);
  EXPECT_EQ(some->front().positions, (std::vector<int>{0, 7, 14, 19}));
  const auto vocab = static_cast<std::ptrdiff_t>(loaded->card.vocab_size);
  EXPECT_TRUE(std::equal(some->front().logits.begin() + vocab, some->front().logits.begin() + 2 * vocab,
                         all->front().logits.begin() + 7 * vocab));
}

TEST_F(Runs, LeaversAndDetoursKeepTheirRows) {
  const auto loaded = open();
  const auto ids = some_ids(*loaded, 20, 1);
  const std::vector<StreamScript> scripts = {{ids, {4}, 0, 0, {{5, 2, 3}, {10, 0, 4}}}, {ids, {1}, 2, 6, {}}};
  auto taken = run_rows(*loaded, scripts, {}, 1);
  ASSERT_TRUE(taken.is_ok()) << taken.message();
  EXPECT_EQ((*taken)[0].positions.size(), 20u);
  EXPECT_EQ((*taken)[1].positions.size(), 6u);
  EXPECT_TRUE(std::equal((*taken)[1].logits.begin(), (*taken)[1].logits.end(), (*taken)[0].logits.begin()));
}

TEST_F(Runs, AForwardingBackendChangesNothing) {
  const auto plain = open(), wrapped = open(true);
  const auto ids = some_ids(*plain, 30, 2);
  EXPECT_EQ(plain->backend->describe(), wrapped->backend->describe());
  EXPECT_EQ(first_difference(logits_of(*plain, ids, 8).value(), logits_of(*wrapped, ids, 8).value(),
                             static_cast<std::size_t>(plain->card.vocab_size)),
            "equal");
}

TEST_F(Runs, CancelledRepliesSayso) {
  const std::shared_ptr<LoadedModel> loaded = open();
  auto engine = std::move(Engine::create(loaded, {.streams = 2})).value();
  std::vector<Request> requests(3);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = some_ids(*loaded, 4, i);
    requests[i].ignore_eos = true;
    requests[i].top_logprobs = 0;
    requests[i].max_tokens = i == 2 ? 0 : 5;
  }
  auto replies = ask(*engine, requests, {.apart = 1, .cancel_every = 3, .cancel_after = 1});
  ASSERT_TRUE(replies.is_ok()) << replies.message();
  EXPECT_EQ((*replies)[0].reason, FinishReason::kLength);
  EXPECT_EQ((*replies)[0].ids.size(), 5u);
  EXPECT_EQ((*replies)[0].logprobs.size(), 5u);
  EXPECT_GE((*replies)[2].ids.size(), 1u);
  requests[1].prompt.clear();
  EXPECT_FALSE(ask(*engine, requests, Asking{}).is_ok());
}

}  // namespace
}  // namespace steadfast
