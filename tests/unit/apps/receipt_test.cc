// `generate`: its receipt, the time that a template prints, and --check-receipt, which must find what does not agree.
#include <gmock/gmock.h>

#include "command.h"
#include "support/run_command.h"
#include "support/tiny_model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace steadfast {
namespace {

using ::testing::HasSubstr;

class Receipts : public ::testing::Test {
 protected:
  Receipts() {
    const auto text = std::filesystem::path(STEADFAST_SOURCE_DIR) / "tests" / "golden" / "text" / "tokenizer.json";
    const std::string tokenizer = test::read_text(text);
    test::TinyModel::random(21, false, static_cast<int>(Tokenizer::from_json(tokenizer)->vocab_size())).write(folder_);
    folder_.write("tokenizer.json", tokenizer);
    folder_.write("chat_template.jinja",
                  std::string_view("{{ strftime_now('%Y-%m-%d %H:%M:%S') }} {{ messages[0].content }}"));
    ids_ = write("ids.json", Json({5, 6, 7, 8, 9, 10, 11}));
  }

  std::string write(const char* name, const Json& json) const { return folder_.write(name, json.dump()).string(); }
  test::Outcome generate(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"generate", folder_.path().string(), "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return test::run_command({add_generate}, words);
  }
  Json made(std::vector<std::string> more) const {
    more.insert(more.end(), {"--max-tokens", "12", "--json"});
    const auto outcome = generate(more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  test::Outcome check(const Json& saved, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--check-receipt", write("saved.json", saved)});
    return generate(more);
  }
  void expect_differing(const Json& saved, const char* line, const char* end) const {
    const auto outcome = check(saved);
    EXPECT_EQ(outcome.status, 1) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(line));
    EXPECT_THAT(outcome.out, HasSubstr(end));
  }

  test::TempFolder folder_;
  std::string ids_;
};

TEST_F(Receipts, ASavedReplyIsMadeAgain) {
  const Json saved = made({"--ids", ids_, "--temperature", "0.9", "--top-p", "0.95", "--stop", "zq"});
  EXPECT_EQ(saved["prompt_ids"].size(), 7U);
  EXPECT_FALSE(saved["receipt"].contains("now"));
  EXPECT_EQ(saved["receipt"]["arithmetic"].dump(),
            R"({"target":"cpu","act":"int8","prompt_act":"int8","kv_dtype":"bf16","version":1})");
  EXPECT_EQ(saved["receipt"]["path"]["rounds"], saved["ids"].size());
  for (const std::vector<std::string>& path : {std::vector<std::string>{},
                                               {"--kv", "paged", "--page", "16"},
                                               {"--chunk", "2"},
                                               {"--act", "f32"} /* the receipt's own is used */}) {
    const auto outcome = check(saved, path);
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("the reply is the same"));
  }
  const Json told = Json::parse(check(saved, {"--json"}).out);
  EXPECT_TRUE(told["equal"]);
  EXPECT_TRUE(told["made_again"]);
  EXPECT_TRUE(told["compared"]["ids_sha256"]);
}

TEST_F(Receipts, PromptsOfAnArithmeticOfTheirOwn) {
  const Json saved = made({"--ids", ids_, "--temperature", "0.9", "--act", "bf16", "--prompt-act", "int8"});
  EXPECT_EQ(saved["receipt"]["arithmetic"]["act"], "bf16");
  EXPECT_EQ(saved["receipt"]["arithmetic"]["prompt_act"], "int8");
  const auto outcome = check(saved, {"--prompt-act", "f32"});  // the receipt's own is used
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  Json other = saved;
  other["receipt"]["arithmetic"]["prompt_act"] = "f64";
  EXPECT_THAT(check(other).err, HasSubstr("--prompt-act f64"));
  other["receipt"]["arithmetic"]["prompt_act"] = 8;
  EXPECT_THAT(check(other).err, HasSubstr("prompt_act is 8"));
  EXPECT_THAT(generate({"--ids", ids_, "--prompt-act", "int4"}).err, HasSubstr("--prompt-act int4: use int8, bf16 or"));
}

// Receipts of earlier programs, which had one arithmetic for both.
TEST_F(Receipts, WithoutAnArithmeticOfPrompts) {
  Json saved = made({"--ids", ids_, "--act", "bf16"});
  saved["receipt"]["arithmetic"].erase("prompt_act");
  const auto outcome = check(saved);
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
}

TEST_F(Receipts, ChangesAreFound) {
  const Json saved = made({"--ids", ids_, "--temperature", "0.9"});
  const auto changed = [&](auto change) {
    Json copy = saved;
    change(copy);
    return copy;
  };
  const char *not_made = "the reply was not made again", *other = "the reply is another one";
  expect_differing(changed([](Json& j) { j["receipt"]["seed"] = 1; }), "receipt            differs", not_made);
  expect_differing(changed([](Json& j) { j["prompt_ids"][0] = 4; }), "prompt_ids_sha256  differs", not_made);
  expect_differing(changed([](Json& j) { j["ids"][3] = 4; }), "ids                differs", not_made);
  expect_differing(changed([](Json& j) { j["receipt"]["arithmetic"]["version"] = 2; }), "arithmetic         differs",
                   not_made);
  expect_differing(changed([](Json& j) {
                     j.erase("ids");
                     j["receipt"]["ids_sha256"] = std::string(64, '0');
                   }),
                   "ids_sha256         differs", other);
  expect_differing(changed([](Json& j) { j["finish_reason"] = "stop"; }), "finish_reason      differs", other);
  test::TinyModel::random(22, false, 300).write(folder_);
  std::filesystem::remove(folder_.path() / "tokenizer.json");
  expect_differing(saved, "model_digest       differs", not_made);
}

TEST_F(Receipts, TheTemplatesTimeIsTheReceipts) {
  const Json saved = made({"--prompt", "hello", "--now", "1700000000"});
  EXPECT_EQ(saved["receipt"]["now"], 1700000000);
  const auto tokenizer = Tokenizer::from_folder(folder_.path());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->decode(saved["prompt_ids"].get<std::vector<TokenId>>()), "2023-11-14 22:13:20 hello");
  // A reply of the API has no prompt_ids: they are rendered again, at the receipt's time.
  const Json api = {{"choices", Json::array()}, {"steadfast", saved["receipt"]}};
  EXPECT_EQ(check(api, {"--prompt", "hello"}).status, 0);
  EXPECT_THAT(check(api, {"--prompt", "hell"}).out, HasSubstr("prompt_ids_sha256  differs"));
  const auto none = check(api);
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("give the prompt by --prompt, --ids or --messages"));
  const std::string messages = write("messages.json", Json::array({{{"role", "user"}, {"content", "hello"}}}));
  EXPECT_EQ(made({"--messages", messages, "--now", "1700000000"})["ids"], saved["ids"]);
  const auto before = clock_seconds();
  EXPECT_GE(made({"--prompt", "hello"})["receipt"]["now"].get<std::int64_t>(), before);
}

TEST_F(Receipts, FilesWithoutAReceipt) {
  const Json saved = made({"--ids", ids_});
  const auto refused = [&](const Json& json, const char* part) {
    const auto outcome = check(json);
    EXPECT_EQ(outcome.status, 1) << json;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  refused(Json::array(), "holds no receipt");
  refused({{"receipt", 5}}, "holds no whole receipt");
  refused({{"steadfast", {{"choices", Json::array()}}}}, "has several choices");
  for (const char* key : {"seed", "sampling", "ids_sha256", "arithmetic", "request_digest"}) {
    Json less = saved;
    less["receipt"].erase(key);
    refused(less, "holds no whole receipt");
  }
  Json odd = saved;
  odd["prompt_ids"][0] = "x";
  refused(odd, "prompt_ids holds \"x\", which is no token id");
  const auto missing = generate({"--check-receipt", (folder_.path() / "nowhere.json").string()});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("nowhere.json"));
}

}  // namespace
}  // namespace steadfast
