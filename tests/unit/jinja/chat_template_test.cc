// ChatTemplate: where templates and tokens come from, and what is done to messages before rendering.
#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "golden.h"
#include "support/gguf_builder.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

using testing::HasSubstr;

TemplateInput said(Json messages) {
  TemplateInput input;
  input.messages = std::move(messages);
  return input;
}

std::string rendered(std::string_view source, const TemplateInput& input) {
  const auto parsed = ChatTemplate::parse(source, "<s>", "</s>");
  EXPECT_TRUE(parsed) << parsed.message();
  const auto text = parsed->render(input);
  EXPECT_TRUE(text) << text.message();
  return text ? *text : "";
}

std::string error_of(const TemplateInput& input) {
  const auto text = ChatTemplate::parse("{{ messages }}").value().render(input);
  EXPECT_FALSE(text);
  return text.message();
}

TEST(ChatTemplate, ContextHoldsWhatHuggingFacePasses) {
  TemplateInput input = said({{{"role", "user"}, {"content", "Hi"}}});
  EXPECT_EQ(rendered("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ tools }}{{ documents }}{{ "
                     "add_generation_prompt }}",
                     input),
            "<s>Hi</s>NoneNoneTrue");
  input.add_generation_prompt = false;
  input.tools = Json::array({{{"b", 1}, {"a", 2}}});
  input.kwargs = {{"enable_thinking", false}, {"documents", "d"}};
  EXPECT_EQ(rendered("{{ tools | tojson }}{{ add_generation_prompt }}{{ enable_thinking }}{{ documents }}", input),
            "[{\"b\": 1, \"a\": 2}]FalseFalsed");
  input.kwargs = {{"add_generation_prompt", true}, {"bos_token", "B"}};
  EXPECT_EQ(rendered("{{ add_generation_prompt }}{{ bos_token }}", input), "TrueB");
}

TEST(ChatTemplate, ArgumentsOfToolCallsAreObjects) {
  const auto call = [](Json arguments) {
    return said({{{"role", "assistant"},
                  {"content", ""},
                  {"tool_calls", {{{"function", {{"name", "f"}, {"arguments", arguments}}}}}}}});
  };
  const std::string source = "{{ messages[0].tool_calls[0].function.arguments | tojson }}";
  EXPECT_EQ(rendered(source, call(R"({"z": 1, "a": [2.50, "é"]})")), "{\"z\": 1, \"a\": [2.5, \"é\"]}");
  EXPECT_EQ(rendered(source, call({{"x", 1}})), "{\"x\": 1}");
  EXPECT_EQ(rendered(source, call("")), "{}");
  EXPECT_THAT(error_of(call("{\"a\": ")), HasSubstr("messages[0].tool_calls[0].function.arguments is not valid JSON"));
  EXPECT_THAT(error_of(call(std::string(100000, '[') + std::string(100000, ']'))), HasSubstr("nested too deeply"));
}

TEST(ChatTemplate, NullContentIsEmpty) {
  const std::string source = "{% for m in messages %}[{{ m.content }}|{{ m.content is defined }}]{% endfor %}";
  EXPECT_EQ(
      rendered(source,
               said({{{"role", "assistant"}, {"content", nullptr}}, {{"role", "assistant"}}, {{"role", "user"}}})),
      "[|True][|True][|False]");
}

TEST(ChatTemplate, RefusesWhatIsNotARequest) {
  EXPECT_THAT(error_of(said("text")), HasSubstr("messages must be an array"));
  EXPECT_THAT(error_of(said({"text"})), HasSubstr("messages[0] must be an object"));
  TemplateInput input = said(Json::array());
  input.tools = "x";
  EXPECT_THAT(error_of(input), HasSubstr("tools must be an array"));
  input.tools = nullptr;
  input.kwargs = Json::array();
  EXPECT_THAT(error_of(input), HasSubstr("chat_template_kwargs must be an object"));
  input.kwargs = {{"messages", 1}};
  EXPECT_THAT(error_of(input), HasSubstr("may not hold 'messages'"));
  input.kwargs = Json::parse("{\"x\": " + std::string(100000, '[') + std::string(100000, ']') + "}");
  EXPECT_THAT(error_of(input), HasSubstr("nested more than 100 levels"));
}

TEST(ChatTemplate, ErrorsOfTheTemplateNameIt) {
  const auto parsed = ChatTemplate::parse("a\n{% nope %}");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.message(), "chat template, line 2: unknown statement 'nope'");
}

class ChatTemplateFolder : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string prompt(Json tools = nullptr) {
    const auto loaded = ChatTemplate::from_folder(folder_.path());
    if (!loaded) return "error: " + loaded.message();
    TemplateInput input;
    input.tools = std::move(tools);
    return loaded->render(input).value();
  }
  test::TempFolder folder_;
};

TEST_F(ChatTemplateFolder, WithoutOneSaysSo) {
  EXPECT_THAT(prompt(), HasSubstr("has no chat template"));
  write("tokenizer_config.json", "{}");
  EXPECT_THAT(prompt(), HasSubstr("has no chat template"));
  write("tokenizer_config.json", "[");
  EXPECT_THAT(prompt(), HasSubstr("tokenizer_config.json is not a JSON object"));
}

TEST_F(ChatTemplateFolder, ReadsTheConfig) {
  write("tokenizer_config.json",
        R"({"chat_template": "c{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ unk_token is defined }}",
      "bos_token": {"content": "<b>"}, "eos_token": "<e>", "pad_token": null, "additional_special_tokens": ["<x>"]})");
  EXPECT_EQ(prompt(), "c<b><e>False");
  write("chat_template.jinja", "file {{ bos_token }}{{ additional_special_tokens }}");
  EXPECT_EQ(prompt(), "file <b>['<x>']");
  write("additional_chat_templates/tool_use.jinja", "tools {{ tools | length }}");
  EXPECT_EQ(prompt(), "file <b>['<x>']");
  EXPECT_EQ(prompt(Json::array({1})), "tools 1");
}

TEST_F(ChatTemplateFolder, ReadsNamedTemplates) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "with tools"}]})");
  EXPECT_EQ(prompt(), "plain");
  EXPECT_EQ(prompt(Json::array()), "with tools");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  EXPECT_THAT(prompt(), HasSubstr("has no chat template"));
  write("chat_template.json", R"({"chat_template": "from its own file"})");
  EXPECT_EQ(prompt(), "from its own file");
}

TEST(ChatTemplate, ReadsGgufFiles) {
  const auto prompt = [](const test::GgufBuilder& builder) {
    const test::Bytes bytes = builder.build();
    const auto file = GgufFile::from_bytes(bytes, "test.gguf");
    EXPECT_TRUE(file) << file.message();
    const auto loaded = ChatTemplate::from_gguf(**file);
    return loaded ? loaded->render({}).value() : "error: " + loaded.message();
  };
  test::GgufBuilder builder;
  builder.add_kv("general.architecture", "llama");
  EXPECT_THAT(prompt(builder), HasSubstr("has no tokenizer.chat_template"));
  builder.add_kv("tokenizer.chat_template", "{{ bos_token }}-{{ eos_token }}");
  EXPECT_EQ(prompt(builder), "-");
  builder.add_kv("tokenizer.ggml.tokens", std::vector<std::string>{"a", "<s>", "</s>"});
  builder.add_kv("tokenizer.ggml.bos_token_id", std::uint32_t{1})
      .add_kv("tokenizer.ggml.eos_token_id", std::uint32_t{99});
  EXPECT_EQ(prompt(builder), "<s>-");
}

}  // namespace
}  // namespace steadfast
