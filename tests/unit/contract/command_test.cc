// The command's words and exit statuses.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "command.h"
#include "support/run_command.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

using testing::HasSubstr;

test::Outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), "contract");
  return test::run_command({add_contract}, std::move(words));
}

TEST(ContractCommand, ListsKernelsCasesGatesAndFaults) {
  const test::Outcome outcome = run({"list"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"linear: ", "attention: ", "delta: ", "gates: float64", "planted faults: two", "card   27B"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  const auto json = nlohmann::json::parse(run({"list", "--kernel", "*norm", "--json"}).out);
  EXPECT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["kernel"], "rms_norm");
  EXPECT_EQ(run({"list", "--kernel", "nothing"}).status, 2);
}

TEST(ContractCommand, ChecksAndSaysThatItHolds) {
  const test::Outcome outcome = run({"check", "--device", "cpu", "--threads", "1", "--smallest", "--kernel", "*_mul"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("sigmoid_mul"));
  EXPECT_THAT(outcome.out, HasSubstr("the contract holds here"));
  const test::Outcome json =
      run({"check", "--device", "cpu", "--threads", "1", "--smallest", "--kernel", "linear", "--act", "f32", "--json"});
  const auto result = nlohmann::json::parse(json.out);
  EXPECT_EQ(result["fine"], true);
  EXPECT_EQ(result["kernels"][0]["caught"], 3);
  EXPECT_GT(result["kernels"][0]["rows"], 500);
  EXPECT_THAT(result["device"].get<std::string>(), HasSubstr("f32 activations"));
}

// With bf16 replies and int8 prompts: references of the other arithmetic would not bound what comes.
TEST(ContractCommand, ChecksLinearsOfPrompts) {
  const test::Outcome outcome = run({"check", "--device", "cpu", "--threads", "1", "--smallest", "--kernel", "linear",
                                     "--act", "bf16", "--prompt-act", "int8"});
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("bf16 activations, of prompts int8"));
  EXPECT_EQ(run({"check", "--device", "cpu", "--prompt-act", "int4"}).status, 1);
}

TEST(ContractCommand, ReadsCasesFromAFile) {
  test::TempFolder folder;
  const std::string path = (folder.path() / "my.tsv").string();
  std::ofstream(path) << "silu_mul\twhen\trows\twidth\nmine\tquick\t5\t20\n";
  const test::Outcome outcome = run({"check", "--device", "cpu", "--threads", "1", "--cases", path});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("linear")));
  std::ofstream(path) << "silu_mul\twhen\trows\twidth\nmine\tquick\t5\tmany\n";
  const test::Outcome wrong = run({"check", "--device", "cpu", "--cases", path});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("my.tsv, line 2: width: \"many\" is not a whole number"));
}

TEST(ContractCommand, RefusesWhatItDoesNotKnow) {
  const test::Outcome kernel = run({"check", "--device", "cpu", "--kernel", "softmax"});
  EXPECT_EQ(kernel.status, 1);
  EXPECT_THAT(kernel.err, HasSubstr("no case of a kernel \"softmax\" here; the kernels are linear, embed"));
  EXPECT_EQ(run({"check", "--device", "tpu"}).status, 1);
  EXPECT_EQ(run({"check", "--device", "cpu", "--act", "int4"}).status, 1);
  EXPECT_EQ(run({}).status, 2);
}

TEST(ContractCommand, PrintsTheRecordsOfLimits) {
  const test::Outcome outcome = run({"limits", "--device", "cpu"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("sm_90a, nvcc"));
  EXPECT_THAT(outcome.out, HasSubstr("attention_hopper.cu"));
  const auto json = nlohmann::json::parse(run({"limits", "--device", "cpu", "--json"}).out);
  EXPECT_EQ(json["spilling"], 0);
  EXPECT_EQ(json["records"].size(), 6u);
}

TEST(ContractCommand, TimesCasesBesideTheirFloors) {
  const test::Outcome outcome =
      run({"bench", "--device", "cpu", "--threads", "1", "--smallest", "--kernel", "rms_norm", "--json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_GT(json["bytes_per_second"], 1e8);
  EXPECT_GT(json["operations_per_second"], 1e8);
  const auto& timing = json["timings"][0];
  EXPECT_GT(timing["median_seconds"], 0);
  EXPECT_GE(timing["median_seconds"], timing["least_seconds"]);
  EXPECT_GT(timing["floor_seconds"], 0);
  EXPECT_EQ(timing["floor_by"], "bytes");
}

}  // namespace
}  // namespace steadfast
