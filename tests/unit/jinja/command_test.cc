// `template` as the command line runs it: the exact prompt, sentences, exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "command.h"
#include "support/gguf_builder.h"
#include "support/run_command.h"
#include "support/temp_folder.h"

namespace steadfast {

namespace {

using testing::HasSubstr;

test::Outcome run(std::vector<std::string> words) { return test::run_command({add_template}, std::move(words)); }

constexpr std::string_view kSource =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{{ tools | tojson }}{{ x }}{% if "
    "add_generation_prompt %}>{% "
    "endif %}";

class TemplateCommand : public testing::Test {
 protected:
  TemplateCommand() { folder_.write("chat_template.jinja", kSource); }
  std::string write(const char* name, std::string_view text) const { return folder_.write(name, text).string(); }

  test::TempFolder folder_;
  std::string model_ = folder_.path().string();
  std::string messages_ = write("messages.json", R"([{"role": "user", "content": "é\u0000"}])");
};

TEST_F(TemplateCommand, PrintsThePromptExactly) {
  const std::string prompt("<user>é\0\n", 10);
  EXPECT_EQ(run({"template", model_, "--messages", messages_}).out, prompt + "null>");
  EXPECT_EQ(run({"template", model_, "--messages", messages_, "--no-generation-prompt"}).out, prompt + "null");
  const std::string tools = write("tools.json", R"([{"z": 1, "a": 2}])");
  const test::Outcome all =
      run({"template", model_, "--messages", messages_, "--tools", tools, "--kwargs", "{\"x\": [1, null]}"});
  EXPECT_EQ(all.out, prompt + "[{\"z\": 1, \"a\": 2}][1, None]>");
  EXPECT_EQ(all.status, 0);
  EXPECT_EQ(all.err, "");
}

TEST_F(TemplateCommand, TakesAWholeRequest) {
  const std::string request =
      write("r.json", R"({"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": [1]})");
  EXPECT_EQ(run({"template", model_, "--messages", request}).out, "<user>a\n[1]>");
}

TEST_F(TemplateCommand, ReadsGgufFiles) {
  test::GgufBuilder builder;
  builder.add_kv("general.architecture", "llama").add_kv("tokenizer.chat_template", "gguf {{ messages | length }}");
  const test::TempFolder other;
  const std::string file = other.write("model.gguf", builder.build()).string();
  EXPECT_EQ(run({"template", file, "--messages", messages_}).out, "gguf 1");
  EXPECT_EQ(run({"template", other.path().string(), "--messages", messages_}).out, "gguf 1");
}

TEST_F(TemplateCommand, WrongUse) {
  const auto expect_misuse = [&](const std::vector<std::string>& words, const char* part) {
    const test::Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 2) << part;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  expect_misuse({"template", model_}, "--messages");
  expect_misuse({"template", model_, "--messages", model_ + "/absent"}, "absent cannot be read");
  expect_misuse({"template", model_, "--messages", write("x", "hello")}, "is not JSON");
  expect_misuse({"template", model_, "--messages", write("x", "{}")}, "is not a JSON array of messages");
  expect_misuse({"template", model_, "--messages", messages_, "--tools", write("x", "{}")}, "array of tools");
  expect_misuse({"template", model_, "--messages", messages_, "--kwargs", "[1]"}, "--kwargs is not a JSON object");
}

TEST_F(TemplateCommand, Failures) {
  const auto expect_failure = [&](const std::string& model, const char* part) {
    const test::Outcome outcome = run({"template", model, "--messages", messages_});
    EXPECT_EQ(outcome.status, 1) << part;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  expect_failure(model_ + "/nowhere", "nowhere");
  write("chat_template.jinja", "a\n{{ raise_exception('no tools') }}");
  expect_failure(model_, "chat template, line 2: no tools");
  write("chat_template.jinja", "{% nope %}");
  expect_failure(model_, "chat template, line 1: unknown statement 'nope'");
  const test::TempFolder empty;
  expect_failure(empty.path().string(), "has no chat template");
}

}  // namespace
}  // namespace steadfast
