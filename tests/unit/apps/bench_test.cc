// `bench` on a tiny model and on the fixture: what its JSON holds, what it counts, what it refuses.
#include <gmock/gmock.h>

#include "command.h"
#include "concurrent.h"
#include "support/run_command.h"
#include "support/tiny_model.h"

namespace steadfast {
namespace {

using ::testing::HasSubstr;

class Bench : public ::testing::Test {
 protected:
  Bench() { test::TinyModel::random(5).write(folder_); }

  test::Outcome run(const std::vector<std::string>& what, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"bench"};
    words.insert(words.end(), what.begin(), what.end());
    words.insert(words.end(), {"--threads", "1"});
    words.insert(words.end(), more.begin(), more.end());
    return test::run_command({add_bench}, words);
  }
  test::Outcome concurrent(const std::vector<std::string>& more) const { return run({"concurrent", model()}, more); }
  nlohmann::json json_of(const test::Outcome& outcome) const {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  std::string model() const { return folder_.path().string(); }
  std::string write(const char* text) const { return folder_.write("prompts.json", std::string_view(text)).string(); }

  test::TempFolder folder_;
};

TEST_F(Bench, ConcurrentTellsSpeedAndEquality) {
  const auto json = json_of(concurrent({"--levels", "1,3", "--tokens", "6", "--reps", "2", "--temperatures", "0,0.8",
                                        "--alone", "--serial", "--kv", "both", "--page", "16", "--json"}));
  EXPECT_EQ(json["bench"], "concurrent");
  EXPECT_EQ(json["target"], "cpu");
  EXPECT_EQ(json["act"], "int8");
  EXPECT_EQ(json["kv_dtype"], "bf16");
  EXPECT_EQ(json["tokens"], 6);
  EXPECT_EQ(json["prompt_tokens"].size(), 3U);
  EXPECT_TRUE(json["equal"]);
  ASSERT_EQ(json["levels"].size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    const auto& level = json["levels"][i];
    const int streams = i / 2 % 2 == 0 ? 1 : 3;
    EXPECT_EQ(level["kv"], i % 2 == 0 ? "whole" : "paged");
    EXPECT_EQ(level["temperature"], i < 4 ? 0.0 : 0.8);
    EXPECT_EQ(level["streams"], streams);
    EXPECT_EQ(level["runs"].size(), 2U);
    for (const char* key :
         {"tokens_per_second", "tokens_per_second_of_a_stream", "first_token_seconds", "longest_first_token_seconds"})
      EXPECT_GT(level[key].get<double>(), 0) << key;
    const nlohmann::json all = {{"equal", streams}, {"of", streams}};
    for (const char* key : {"alone", "serial", "repeated"}) EXPECT_EQ(level[key], all) << key;
    EXPECT_EQ(level.contains("whole"), i % 2 == 1);
    EXPECT_EQ(level.contains("paged_over_whole"), i % 2 == 1);
  }
}

TEST_F(Bench, ConcurrentSendsRequestsThroughFewerStreams) {
  const auto json = json_of(
      concurrent({"--levels", "1@96:paged,3,2@64:whole", "--requests", "5", "--prompt-tokens", "5,41,17,1,30",
                  "--tokens", "6", "--reps", "1", "--temperatures", "0.8", "--alone", "--page", "16", "--json"}));
  EXPECT_EQ(json["prompt_tokens"], nlohmann::json({5, 41, 17, 1, 30}));
  ASSERT_EQ(json["alone"].size(), 1U);
  EXPECT_EQ(json["alone"][0]["kv"], "whole");
  EXPECT_EQ(json["alone"][0]["context"], 96);
  EXPECT_EQ(json["alone"][0]["streams"], 1);
  EXPECT_GT(json["alone"][0]["tokens_per_second"].get<double>(), 0);
  ASSERT_EQ(json["levels"].size(), 3U);
  const std::vector<std::tuple<std::string, int, int>> expected = {
      {"paged", 1, 96}, {"whole", 3, 47}, {"whole", 2, 64}};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& level = json["levels"][i];
    EXPECT_EQ(std::tuple(level["kv"].get<std::string>(), level["streams"].get<int>(), level["context"].get<int>()),
              expected[i]);
    EXPECT_EQ(level["requests"], 5);
    EXPECT_EQ(level["alone"], nlohmann::json({{"equal", 5}, {"of", 5}}));
  }
}

// The process holds weights, workspace and, on pages, the pool; windows come with their streams.
TEST_F(Bench, ConcurrentTellsIdleMemory) {
  const auto json = json_of(
      concurrent({"--levels", "2", "--tokens", "4", "--reps", "1", "--temperatures", "0", "--kv", "both", "--json"}));
  const auto &whole = json["levels"][0], &paged = json["levels"][1];
  for (const auto& level : {whole, paged}) {
    const auto& plan = level["memory"];
    const auto held =
        plan["weights_bytes"].get<double>() + plan["workspace_bytes"].get<double>() + plan["pool_bytes"].get<double>();
    EXPECT_GT(level["idle_mib"].get<double>(), held / (1 << 20));
  }
  EXPECT_GT(whole["memory"]["windows_bytes"].get<double>(), 0);
  EXPECT_GT(paged["memory"]["pool_bytes"].get<double>(), 0);
}

TEST(ParseLevel, TakesStreamsContextAndLayout) {
  const auto level = parse_level("8@65536:paged");
  ASSERT_TRUE(level);
  EXPECT_EQ(level->streams, 8);
  EXPECT_EQ(level->context, 65536);
  EXPECT_EQ(level->kv, "paged");
  EXPECT_EQ(parse_level("12").value().context, 0);
  EXPECT_EQ(parse_level("12:whole").value().kv, "whole");
  EXPECT_EQ(parse_level("12@99").value().kv, "");
  for (const char* word :
       {"", "0", "-1", "1025", "x", "4@", "4@0", "4@-2:whole", "4:both", "4@9:", "4 ", "4@9:paged,", "99999999999"})
    EXPECT_FALSE(parse_level(word)) << word;
}

TEST_F(Bench, ConcurrentPrintsATable) {
  const auto outcome =
      concurrent({"--levels", "2", "--tokens", "4", "--reps", "1", "--temperatures", "0", "--alone", "--serial"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("idle MiB"));
  EXPECT_THAT(outcome.out, HasSubstr("alone, 2 replies"));
  EXPECT_THAT(outcome.out, HasSubstr("2/2 alone, 2/2 serial"));
  const auto both =
      concurrent({"--levels", "2", "--tokens", "4", "--reps", "2", "--temperatures", "0", "--kv", "both"});
  EXPECT_THAT(both.out, HasSubstr("2/2 repeated, 2/2 whole; "));
}

TEST_F(Bench, ConcurrentTakesPromptsFromAFile) {
  const std::string file = write("[[1, 2, 3], [4, 5], [6]]");
  const auto json = json_of(concurrent({"--levels", "2", "--tokens", "4", "--reps", "1", "--prompts", file, "--json"}));
  EXPECT_EQ(json["prompt_tokens"], nlohmann::json({3, 2}));
  EXPECT_FALSE(json["levels"][0].contains("alone"));

  const auto refused = [&](const char* text, const char* part) {
    const auto outcome = concurrent({"--levels", "2", "--tokens", "4", "--reps", "1", "--prompts", write(text)});
    EXPECT_EQ(outcome.status, 1) << text;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  refused("[[1]]", "has 1 prompts; 2 requests need as many");
  refused("{}", "must hold a JSON array of prompts");
  refused("[[1], [96]]", "prompt 1: 96 is no token id of this model (0 to 95)");
  refused("[[1], 5]", "prompt 1: it must be a string, messages, or token ids");
  refused("[[1], \"hi\"]", "no tokenizer files");
}

TEST_F(Bench, PromptsAndRepliesMustFitTheWindow) {
  const auto long_reply = concurrent({"--levels", "1", "--tokens", "128"});
  EXPECT_EQ(long_reply.status, 1);
  EXPECT_THAT(long_reply.err, HasSubstr("leave no room for prompts in a window of 128"));
  const auto small =
      concurrent({"--levels", "1", "--tokens", "4", "--context", "6", "--prompts", write("[[1, 2, 3]]")});
  EXPECT_EQ(small.status, 1);
  EXPECT_THAT(small.err, HasSubstr("prompt 0 has 3 tokens; with 4 more for the reply a window of 6 is too small"));
  const auto few = concurrent({"--levels", "2", "--tokens", "4", "--prompt-tokens", "3"});
  EXPECT_EQ(few.status, 1);
  EXPECT_THAT(few.err, HasSubstr("--prompt-tokens has 1 prompts; 2 requests need as many"));
  const auto large = concurrent({"--levels", "1@20", "--tokens", "4", "--prompt-tokens", "17"});
  EXPECT_THAT(large.err, HasSubstr("prompt 0 has 17 tokens; with 4 more for the reply a window of 20 is too small"));
  // Built-in prompts are cut to what fits: the sixth has some 570 ids.
  const auto json = json_of(
      concurrent({"--levels", "6", "--tokens", "100", "--reps", "1", "--temperatures", "0", "--alone", "--json"}));
  for (const auto& tokens : json["prompt_tokens"]) EXPECT_LE(tokens.get<int>(), 28);
  EXPECT_TRUE(json["equal"]);
}

TEST_F(Bench, WrongUseIsTwoAndASentence) {
  const auto expect_misuse = [&](const std::vector<std::string>& more, const char* part) {
    const auto outcome = concurrent(more);
    EXPECT_EQ(outcome.status, 2) << part;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  expect_misuse({"--levels", "0"}, "--levels 0: use STREAMS, ");
  expect_misuse({"--levels", "1@9:sideways"}, "--levels 1@9:sideways");
  expect_misuse({"--requests", "-1"}, "--requests -1: use 1 to 4096");
  expect_misuse({"--prompt-tokens", "3,0"}, "--prompt-tokens 0: a prompt has at least one token");
  expect_misuse({"--prompt-tokens", "3", "--prompts", "x"}, "--prompts or --prompt-tokens, not both");
  expect_misuse({"--levels", "1,many"}, "--levels");
  expect_misuse({"--tokens", "1"}, "--tokens must be at least 2");
  expect_misuse({"--reps", "0"}, "--reps must be at least 1");
  expect_misuse({"--temperatures", "-1"}, "--temperatures -1: use 0 to 100");
  expect_misuse({"--kv", "sideways"}, "--kv sideways");
  expect_misuse({"--kv", "both", "--page", "17"}, "17");
  EXPECT_EQ(run({"prefix", model()}, {"--reps", "0"}).status, 2);
  EXPECT_EQ(run({"sideways", model()}, {}).status, 2);
  EXPECT_EQ(run({"concurrent"}, {}).status, 2);
}

TEST_F(Bench, PrefixTellsColdAndWarm) {
  const std::vector<std::string> sizes = {"--prefix-tokens", "40", "--rest-tokens", "8", "--tokens", "4",
                                          "--reps",          "2",  "--page",        "16"};
  std::vector<std::string> with_json = sizes;
  with_json.emplace_back("--json");
  const auto json = json_of(run({"prefix", model()}, with_json));
  EXPECT_EQ(json["kv"], "paged");
  EXPECT_EQ(json["prompt_tokens"], 48);
  EXPECT_EQ(json["rows_reused"], 32);
  EXPECT_EQ(json["same"], nlohmann::json({{"equal", 2}, {"of", 2}}));
  EXPECT_GT(json["cold_seconds"].get<double>(), 0);
  EXPECT_EQ(json["warm_runs"].size(), 2U);
  EXPECT_THAT(run({"prefix", model()}, sizes).out, HasSubstr("2/2 the same ids"));
  const auto large = run({"prefix", model()}, {});
  EXPECT_EQ(large.status, 1);
  EXPECT_THAT(large.err, HasSubstr("do not fit the model's 128 positions"));
}

TEST_F(Bench, DecodeAndPrompt) {
  const auto decode = json_of(run({"decode", model()}, {"--reply-tokens", "5", "--runs", "2", "--json"}));
  EXPECT_EQ(decode["bench"], "decode");
  EXPECT_EQ(decode["runs"].size(), 2U);
  const auto prompt = json_of(run({"prompt", model()}, {"--prompt-tokens", "20", "--runs", "1", "--json"}));
  EXPECT_EQ(prompt["bench"], "prompt");
  EXPECT_GT(prompt["tokens_per_second"].get<double>(), 0);
}

TEST(BenchOnTheFixture, TextsAndMessagesGoThroughTheTemplate) {
  const test::TempFolder folder;
  const std::string file =
      folder.write("prompts.json", std::string_view(R"(["Hello", [{"role": "user", "content": "Hello"}], [5, 6]])"))
          .string();
  const std::string model = STEADFAST_SOURCE_DIR "/tests/fixture/model";
  const std::vector<std::string> words = {"bench",  "concurrent", model,       "--tokens", "8",
                                          "--reps", "1",          "--threads", "1"};
  std::vector<std::string> given = words;
  given.insert(given.end(), {"--levels", "3", "--prompts", file, "--temperatures", "0.8", "--alone", "--json"});
  const auto outcome = test::run_command({add_bench}, given);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["prompt_tokens"][0], json["prompt_tokens"][1]);
  EXPECT_EQ(json["prompt_tokens"][2], 2);
  std::vector<std::string> lengths = words;
  lengths.insert(lengths.end(), {"--levels", "1", "--requests", "3", "--prompt-tokens", "24,700,61", "--temperatures",
                                 "0", "--alone", "--json"});
  const auto exact = test::run_command({add_bench}, lengths);
  EXPECT_EQ(exact.status, 0) << exact.err;
  EXPECT_EQ(nlohmann::json::parse(exact.out)["prompt_tokens"], nlohmann::json({24, 700, 61}));
  std::vector<std::string> built_in = words;
  built_in.insert(built_in.end(), {"--levels", "2", "--temperatures", "0", "--alone", "--serial", "--kv", "both"});
  const auto both = test::run_command({add_bench}, built_in);
  EXPECT_EQ(both.status, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("2/2 alone, 2/2 serial, 2/2 whole"));
}

TEST(CountSame, KeepsTheLeastAndTheFirst) {
  const std::vector<Ids> streams = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  Same same;
  count_same(streams, streams, same);
  EXPECT_EQ(same.equal, 3);
  EXPECT_EQ(same.first, "");
  count_same(streams, std::vector<Ids>{{1, 2, 3}, {4, 0, 6}, {7, 8, 0}}, same);
  EXPECT_EQ(same.equal, 1);
  EXPECT_EQ(same.first, "reply 1 from token 1 on");
  count_same(streams, std::vector<Ids>{{1, 2}, {4, 5, 6}, {7, 8, 9}}, same);
  EXPECT_EQ(same.equal, 1);
  EXPECT_EQ(same.first, "reply 1 from token 1 on");
}

}  // namespace
}  // namespace steadfast
