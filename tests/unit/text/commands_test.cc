// tokenize and detokenize as the command line runs them: results, sentences, exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "command.h"
#include "sample.h"
#include "support/run_command.h"
#include "support/temp_folder.h"

namespace steadfast {

namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

test::Outcome run(std::vector<std::string> words) {
  return test::run_command({add_tokenize, add_detokenize}, std::move(words));
}

class Commands : public ::testing::Test {
 protected:
  Commands() {
    folder_.write("tokenizer.json", test::sample_json().dump());
    folder_.write("model.gguf", test::gguf_of(test::sample_json(), "qwen2").build());
  }
  std::string path(const char* name) const { return (folder_.path() / name).string(); }
  std::string write(const char* name, std::string_view text) const { return folder_.write(name, text).string(); }
  std::string ids_of(std::string_view text) const {
    return nlohmann::json(test::sample_tokenizer().encode(text)).dump();
  }
  void expect_misuse(const std::vector<std::string>& words, const char* part) {
    const test::Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 2) << part;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }

  test::TempFolder folder_;
  std::string model_ = folder_.path().string();
};

TEST_F(Commands, TokenizeEveryInput) {
  EXPECT_EQ(run({"tokenize", model_, "--text", "Hi <think>"}).out, ids_of("Hi <think>") + "\n");
  EXPECT_EQ(run({"tokenize", path("model.gguf"), "--text", "Hi <think>"}).out, ids_of("Hi <think>") + "\n");
  EXPECT_EQ(run({"tokenize", model_, "--text", ""}).out, "[]\n");
  EXPECT_EQ(run({"tokenize", model_, "--text", "Hi", "--json"}).out, "{\"ids\":" + ids_of("Hi") + "}\n");
  EXPECT_EQ(run({"tokenize", model_, "--file", write("t", "a\nb")}).out, ids_of("a\nb") + "\n");
  const auto strings = write("s.json", R"(["a", "", "b c"])");
  EXPECT_EQ(run({"tokenize", model_, "--strings", strings}).out, "[" + ids_of("a") + ",[]," + ids_of("b c") + "]\n");
  EXPECT_NE(run({"tokenize", model_, "--text", "<|im_end|>", "--untrusted"}).out, ids_of("<|im_end|>") + "\n");
}

TEST_F(Commands, DetokenizeIsExact) {
  const std::string text = "Hi <|im_end|>\n\n";
  const auto ids = write("ids.json", ids_of(text));
  EXPECT_EQ(run({"detokenize", model_, "--ids", ids}).out, text);
  EXPECT_EQ(run({"detokenize", model_, "--ids", ids, "--skip-special"}).out, "Hi \n\n");
  EXPECT_EQ(run({"detokenize", model_, "--ids", ids, "--json"}).out, "{\"text\":\"Hi <|im_end|>\\n\\n\"}\n");
  EXPECT_EQ(run({"detokenize", model_, "--ids", write("e", "[]")}).out, "");
  EXPECT_EQ(run({"detokenize", model_, "--ids", write("o", "{\"ids\":" + ids_of("a b") + "}")}).out, "a b");
  EXPECT_EQ(run({"detokenize", model_, "--ids", write("m", "[" + ids_of("a") + ",[]]")}).out, "[\"a\",\"\"]\n");
}

TEST_F(Commands, WrongUse) {
  expect_misuse({"tokenize", model_}, "--text TEXT, --file FILE");
  expect_misuse({"tokenize", model_, "--text", "a", "--file", "b"}, "one of");
  expect_misuse({"tokenize", model_, "--file", path("absent")}, "absent cannot be read");
  expect_misuse({"tokenize", model_, "--file", model_}, "is a folder");
  expect_misuse({"tokenize", model_, "--strings", write("x", "hello")}, "is not JSON");
  expect_misuse({"tokenize", model_, "--strings", write("x", "[1]")}, "array of strings");
  expect_misuse({"tokenize", model_, "--strings", write("x", "{}")}, "array of strings");
  expect_misuse({"detokenize", model_}, "--ids");
  expect_misuse({"detokenize", model_, "--ids", path("absent")}, "absent cannot be read");
  for (const char* wrong : {"{}", "3", "[1.5]", "[\"a\"]", "{\"ids\": 3}", "[null]"}) {
    expect_misuse({"detokenize", model_, "--ids", write("x", wrong)}, "array of token ids");
  }
  expect_misuse({"detokenize", model_, "--ids", write("x", "[[1], 2]")}, "beside lists");
  for (const char* wrong : {"[-1]", "[2147483648]", "[18446744073709551615]", "[5000]", "[[1],[5000]]"}) {
    expect_misuse({"detokenize", model_, "--ids", write("x", wrong)}, "not in the vocabulary");
  }
}

TEST_F(Commands, ModelsThatCannotBeRead) {
  const test::Outcome none = run({"tokenize", path("nowhere"), "--text", "a"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("nowhere"));
  const test::TempFolder empty;
  const test::Outcome folder = run({"tokenize", empty.path().string(), "--text", "a"});
  EXPECT_EQ(folder.status, 1);
  EXPECT_THAT(folder.err, HasSubstr("tokenizer.json"));
  EXPECT_EQ(run({"tokenize", empty.write("x.gguf", std::string_view("GGUF")).string(), "--text", "a"}).status, 1);
  empty.write("x.gguf", test::gguf_of(test::sample_json(), "qwen2").build());
  EXPECT_EQ(run({"tokenize", empty.path().string(), "--text", "a"}).out, ids_of("a") + "\n");
}

}  // namespace
}  // namespace steadfast
