// The engine against Jinja2's own output: tests/golden/text, made by tools/goldens/make_template_goldens.py.
#include "golden.h"

#include <gtest/gtest.h>

#include "text/chat_template.h"

namespace steadfast {
namespace {

TEST(JinjaGolden, EveryCaseIsJinja2s) {
  const Json golden = read_json_file(golden_folder() / "jinja_cases.json");
  ASSERT_GT(golden["cases"].size(), 450U);
  for (const Json& golden_case : golden["cases"]) {
    const auto source = golden_case["template"].get<std::string>();
    const auto text = render(source, golden["context"]);
    if (golden_case.contains("error")) {
      EXPECT_FALSE(text) << source << "\ngives " << (text ? *text : "") << "\nJinja2: " << golden_case["error"];
    } else {
      EXPECT_TRUE(text) << source << "\n" << text.message();
      EXPECT_EQ(text ? *text : "", golden_case["text"].get<std::string>()) << source;
    }
  }
}

std::string token(const Json& golden, const char* name) { return golden["tokens"].value(name, ""); }

void check_chat(const std::string& file, std::size_t at_least) {
  const Json golden = read_json_file(golden_folder() / file);
  const auto parsed = ChatTemplate::parse(golden["template"].get<std::string>(), token(golden, "bos_token"),
                                          token(golden, "eos_token"));
  ASSERT_TRUE(parsed) << parsed.message();
  ASSERT_GE(golden["cases"].size(), at_least);
  for (const Json& golden_case : golden["cases"]) {
    TemplateInput input;
    input.messages = golden_case["messages"];
    input.tools = golden_case.value("tools", Json());
    input.kwargs = golden_case.value("kwargs", Json::object());
    input.add_generation_prompt = golden_case.value("add_generation_prompt", true);
    const auto text = parsed->render(input);
    if (golden_case.contains("error")) {
      ASSERT_FALSE(text) << golden_case;
      const auto error = golden_case["error"].get<std::string>();
      EXPECT_TRUE(text.message().ends_with(error.substr(error.find(": ") + 2))) << text.message() << "\n" << error;
      EXPECT_TRUE(text.message().starts_with("chat template, line ")) << text.message();
    } else {
      ASSERT_TRUE(text) << text.message() << "\n" << golden_case;
      EXPECT_EQ(*text, golden_case["text"].get<std::string>());
    }
  }
}

TEST(ChatTemplateGolden, Qwen3) { check_chat("chat_qwen3.json", 19); }
TEST(ChatTemplateGolden, SmolLm2) { check_chat("chat_smollm2.json", 6); }
TEST(ChatTemplateGolden, Qwen35Rules) { check_chat("chat_qwen3_5_rules.json", 32); }

TEST(ChatTemplateGolden, SharedQwen3FromItsFolder) {
  const std::filesystem::path shared = std::filesystem::path(STEADFAST_SOURCE_DIR).parent_path() / "shared" / "data";
  if (!std::filesystem::exists(shared / "tokenizer_qwen3" / "tokenizer_config.json")) {
    GTEST_SKIP() << "the shared Qwen3 tokenizer is not on this machine";
  }
  const auto loaded = ChatTemplate::from_folder(shared / "tokenizer_qwen3");
  ASSERT_TRUE(loaded) << loaded.message();
  for (const Json& golden_case : read_json_file(shared / "golden" / "chat_template_qwen3.json")) {
    TemplateInput input;
    input.messages = golden_case["messages"];
    input.tools = golden_case["tools"];
    input.kwargs = golden_case["kwargs"];
    const auto text = loaded->render(input);
    ASSERT_TRUE(text) << text.message();
    EXPECT_EQ(*text, golden_case["rendered"].get<std::string>());
  }
}

}  // namespace
}  // namespace steadfast
