// What tests against goldens share: the golden's numbers, a model's own logits and greedy reply, and their distance.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/load_model.h"

namespace steadfast::test {

struct Golden {
  std::filesystem::path folder;
  std::vector<TokenId> ids, greedy;
  std::vector<float> logits;  // [ids, vocab]
};

// golden.json and logits.npy of a model's folder.
Golden read_golden(const std::filesystem::path& folder);

// Whether the device under test has this arithmetic: the CPU each, a card (STEADFAST_DEVICE) bf16 alone.
bool has(Act act);
inline Act finest() { return has(Act::kF32) ? Act::kF32 : Act::kBF16; }

// On the device under test. Fails the test where the model does not load.
std::unique_ptr<LoadedModel> load_golden(const std::filesystem::path& path, Act act);

// [ids, vocab], in pieces of 64 rows.
std::vector<float> scored(const LoadedModel& loaded, const std::vector<TokenId>& ids);

// The reply of `count` tokens at temperature 0, end ids ignored.
std::vector<TokenId> greedy_reply(std::unique_ptr<LoadedModel> loaded, const std::vector<TokenId>& prompt,
                                  std::size_t count);

// Largest |difference| in units of the golden's standard deviation; NaN where there is one.
double largest_difference(const std::vector<float>& got, const std::vector<float>& golden);

}  // namespace steadfast::test
