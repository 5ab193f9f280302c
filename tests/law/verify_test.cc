// verify itself: all its equalities hold on sound engines, and each planted fault is caught by them. That the checks
// can fail is what the plants show: nothing in them knows of a fault.
#include "verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace steadfast::test {
namespace {

const std::filesystem::path kTests = std::filesystem::path(STEADFAST_SOURCE_DIR) / "tests";
const std::filesystem::path kHybrid = kTests / "fixture" / "model", kDense = kTests / "golden" / "qwen3-a";

Verification verified(const std::filesystem::path& model, const VerifyOptions& options, Act act = Act::kInt8,
                      std::optional<Act> prompt_act = std::nullopt) {
  LoadOptions base;
  base.threads = 1;
  base.act = act;
  base.prompt_act = prompt_act;
  auto result = verify(model, base, options);
  EXPECT_TRUE(result.is_ok()) << result.message();
  return result ? std::move(*result) : Verification{};
}

std::string described(const Verification& result) {
  const Equality* row = result.first_differing();
  return row == nullptr ? "" : row->name + ": " + row->first->where + ", " + row->first->what;
}

TEST(Verify, HoldsOnTheFixtureAndTestsAllOfIt) {
  int reported = 0;
  VerifyOptions options;
  options.progress = [&](const Equality&) { ++reported; };
  const Verification result = verified(kHybrid, options);
  EXPECT_EQ(described(result), "");
  EXPECT_EQ(reported, static_cast<int>(result.table.size()));
  EXPECT_GT(result.rows(), 10000);
  EXPECT_GT(result.replies(), 150);
  for (const Equality& row : result.table) {
    const bool elsewhere = row.skipped == "not on this device: it has no graphs";
    EXPECT_EQ(row.cases > 0, !elsewhere) << row.name;
    EXPECT_NE(row.kv, "") << row.name;
    const bool whole = row.skipped.empty() || row.skipped.find("this machine lacks") != std::string::npos;
    EXPECT_TRUE(whole || elsewhere) << row.name << ": " << row.skipped;
  }
}

// Windows in which no page, no draft or no reply has room.
TEST(Verify, SmallWindows) {
  for (const int window : {1, 2, 9, 17, 40}) {
    TinyModel model = TinyModel::random(7);
    model.config["max_position_embeddings"] = window;
    const TempFolder folder;
    model.write(folder);
    const Verification result = verified(folder.path(), {});
    EXPECT_EQ(described(result), "") << "window " << window;
    for (const Equality& row : result.table) EXPECT_TRUE(row.cases > 0 || !row.skipped.empty()) << row.name;
    EXPECT_EQ(result.replies() > 0, window > 1);
  }
}

// Rows in their roles: what a reply's row computes, a prompt's does not.
TEST(Verify, HoldsWherePromptsHaveAnArithmeticOfTheirOwn) {
  TinyModel model = TinyModel::random(9);
  const TempFolder folder;
  model.write(folder);
  const Verification result = verified(folder.path(), {}, Act::kBF16, Act::kInt8);
  EXPECT_EQ(described(result), "");
  EXPECT_GT(result.replies(), 100);
  EXPECT_NE(result.device.find("bf16 activations, of prompts int8"), std::string::npos) << result.device;
}

TEST(Verify, OneCacheTypeWhereOneIsAsked) {
  TinyModel model = TinyModel::random(8);
  const TempFolder folder;
  model.write(folder);
  LoadOptions base;
  base.threads = 1;
  base.kv_dtype = DType::kF32;
  auto result = verify(folder.path(), base, {});
  ASSERT_TRUE(result.is_ok()) << result.message();
  EXPECT_EQ(described(*result), "");
  for (const Equality& row : result->table) EXPECT_EQ(row.kv, "f32") << row.name;
}

struct Plant {
  const char* model;
  std::filesystem::path path;
  Fault fault;
  Act act = Act::kInt8;
  std::optional<Act> prompt_act = std::nullopt;
  friend void PrintTo(const Plant& plant, std::ostream* out) { *out << plant.model << " " << info(plant.fault).name; }
};

std::vector<Plant> plants() {
  std::vector<Plant> all;
  for (const FaultInfo& fault : all_faults()) {
    all.push_back({"hybrid", kHybrid, fault.fault});
    if (fault.fault != Fault::kStaleState) all.push_back({"dense", kDense, fault.fault});
  }
  // The least differences, where rounding to bf16 hides most of them.
  for (const Fault fault : {Fault::kSpanBorder, Fault::kThreadSum})
    all.push_back({"hybrid_bf16", kHybrid, fault, Act::kBF16});
  // Rows of both roles.
  for (const Fault fault : {Fault::kNeighbourScale, Fault::kSharedWrite})
    all.push_back({"hybrid_roles", kHybrid, fault, Act::kBF16, Act::kInt8});
  return all;
}

std::string name_of(const testing::TestParamInfo<Plant>& entry) {
  std::string name = fmt::format("{}_{}", entry.param.model, info(entry.param.fault).name);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

class Planted : public testing::TestWithParam<Plant> {};

INSTANTIATE_TEST_SUITE_P(Faults, Planted, testing::ValuesIn(plants()), name_of);

TEST_P(Planted, IsCaught) {
  VerifyOptions options;
  options.plant = GetParam().fault;
  const Verification result = verified(GetParam().path, options, GetParam().act, GetParam().prompt_act);
  EXPECT_EQ(result.cannot_carry, "");
  const Equality* caught = result.first_differing();
  ASSERT_NE(caught, nullptr) << "missed";
  ASSERT_TRUE(caught->first.has_value());
  EXPECT_NE(caught->first->where, "");
  EXPECT_EQ(caught, &result.table.back()) << "went on after the catch";
}

TEST(Plants, AreKnownByName) {
  for (const FaultInfo& fault : all_faults()) {
    auto parsed = parse_fault(fault.name);
    ASSERT_TRUE(parsed.is_ok());
    EXPECT_EQ(*parsed, fault.fault);
  }
  const auto unknown = parse_fault("gremlin");
  EXPECT_THAT(unknown.message(), testing::HasSubstr("--plant gremlin: use table-swap, "));
}

TEST(Plants, NamedWhereAModelCannotCarryThem) {
  VerifyOptions options;
  options.plant = Fault::kStaleState;
  const Verification dense = verified(kDense, options);
  EXPECT_EQ(dense.cannot_carry, "the model has no recurrent layers");
  EXPECT_TRUE(dense.table.empty());
  EXPECT_THAT(cannot_carry(Fault::kSpanBorder, {true, false, 128}), testing::HasSubstr("600 positions"));
  EXPECT_EQ(cannot_carry(Fault::kPageRow, {false, true, 4096}), "the model has no attention layers");
  EXPECT_EQ(cannot_carry(Fault::kThreadSum, {true, true, 64}), "");
}

}  // namespace
}  // namespace steadfast::test
