// tokenizer.json from GGUF metadata gives the ids that the metadata gives; template and end ids come along.
#include "convert/text_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "models.h"
#include "text/byte_alphabet.h"

namespace steadfast {
namespace {

using Texts = std::vector<std::string>;
using Types = std::vector<std::int32_t>;

// A vocabulary of all bytes, some merges, and added tokens before, between and behind them.
test::GgufBuilder with_tokenizer(test::GgufBuilder builder, const std::string& pre) {
  Texts tokens = {"<|start|>", "<u>"};
  Types types = {3, 4};
  const auto add = [&](const std::string& text, std::int32_t type) {
    tokens.push_back(text);
    types.push_back(type);
  };
  for (int byte = 0; byte < 256; ++byte) add(bytes_to_alphabet(std::string(1, static_cast<char>(byte))), 1);
  add("<|mid é|>", 3);
  const Texts merges = {"t h", "th e", "\xC4\xA0 the", "1 2", "i n", "in g", "< u", "<u >"};
  for (const char* text : {"th", "the", "\xC4\xA0the", "12", "in", "ing", "<u", "[PAD]"})
    add(text, text[0] == '[' ? 5 : 1);
  add("<|end|>", 3);
  add("<tool>", 4);
  builder.add_kv("tokenizer.ggml.model", "gpt2").add_kv("tokenizer.ggml.pre", pre);
  builder.add_kv("tokenizer.ggml.tokens", tokens).add_kv("tokenizer.ggml.token_type", types);
  Texts possible(merges.begin(), merges.end() - 1);  // "<u>" is no normal token
  builder.add_kv("tokenizer.ggml.merges", possible);
  builder.add_kv("tokenizer.ggml.bos_token_id", std::uint32_t{0})
      .add_kv("tokenizer.ggml.eos_token_id", std::uint32_t{267});
  builder.add_kv("tokenizer.ggml.eot_token_id", std::uint32_t{258});
  builder.add_kv("tokenizer.chat_template",
                 "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}");
  return builder;
}

std::string random_text(std::mt19937& dice) {
  static const Texts kParts = {"the",    " the",    "thing", "12", "123",       "I'm", " ",         "\n",
                               "é",      "e\u0301", "नमस्ते",  "½",  "<|start|>", "<u>", "<|mid é|>", "<|end|>",
                               "<tool>", "[PAD]",   "人",    "\t", "..",        "Ġ"};
  std::string text;
  for (int i = 0; i < 12; ++i) text += kParts[dice() % kParts.size()];
  return text;
}

class Pres : public ::testing::TestWithParam<const char*> {};

TEST_P(Pres, SameIdsFromTheFolder) {
  test::TempFolder folder;
  const auto builder =
      with_tokenizer(test::gguf_of_golden("llama-a", [](const std::string&) { return DType::kQ8_0; }), GetParam());
  const auto path = test::write_gguf(folder, builder);
  test::convert(path, folder.path() / "out");
  auto file = GgufFile::open(path);
  ASSERT_TRUE(file.is_ok()) << file.message();
  const auto before = Tokenizer::from_gguf(**file), after = Tokenizer::from_folder(folder.path() / "out");
  ASSERT_TRUE(before.is_ok()) << before.message();
  ASSERT_TRUE(after.is_ok()) << after.message();
  std::mt19937 dice(3);
  for (int round = 0; round < 400; ++round) {
    const std::string text = random_text(dice);
    for (const bool match : {true, false}) {
      const auto ids = before->encode(text, {.match_special = match});
      ASSERT_EQ(after->encode(text, {.match_special = match}), ids) << text;
      ASSERT_EQ(after->decode(ids), before->decode(ids)) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Names, Pres, ::testing::Values("smollm", "gpt-2", "qwen2", "qwen35", "llama-bpe"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ConvertText, TemplateAndEndIdsComeAlong) {
  test::TempFolder folder;
  const auto path = test::write_gguf(
      folder,
      with_tokenizer(test::gguf_of_golden("llama-a", [](const std::string&) { return DType::kQ8_0; }), "smollm"));
  test::convert(path, folder.path() / "out");
  auto before = load_model(path, {}), after = load_model(folder.path() / "out", {});
  ASSERT_TRUE(before.is_ok()) << before.message();
  ASSERT_TRUE(after.is_ok()) << after.message();
  EXPECT_EQ((*after)->card.eos_ids, (*before)->card.eos_ids);
  EXPECT_EQ((*after)->card.eos_ids, (std::vector<TokenId>{267, 258}));
  ASSERT_TRUE((*after)->chat_template.has_value());
  TemplateInput input;
  input.messages.push_back({{"role", "user"}, {"content", "x"}});
  const auto expected = (*before)->chat_template->render(input), rendered = (*after)->chat_template->render(input);
  ASSERT_TRUE(rendered.is_ok()) << rendered.message();
  EXPECT_EQ(*rendered, *expected);
  EXPECT_EQ(*rendered, "<|start|>x<|end|>");
  EXPECT_EQ((*after)->card.defaults.temperature, 0);
  const auto config = test::json_of(folder.path() / "out/generation_config.json");
  EXPECT_EQ(config["eos_token_id"], (nlohmann::json{267, 258}));
}

TEST(ConvertText, SamplingDefaultsBesideTheFileComeAlong) {
  test::TempFolder folder;
  const auto path =
      test::write_gguf(folder, test::gguf_of_golden("llama-a", [](const std::string&) { return DType::kQ8_0; }));
  folder.write("generation_config.json", R"({"temperature": 0.5, "top_k": 7})");
  const auto report = test::convert(path, folder.path() / "out");
  EXPECT_THAT(report.notes, ::testing::Contains(::testing::HasSubstr("no tokenizer")));
  EXPECT_EQ(test::json_of(folder.path() / "out/generation_config.json")["top_k"], 7);
}

TEST(ConvertText, ABrokenTokenizerIsAnError) {
  test::TempFolder folder;
  auto builder = test::gguf_of_golden("llama-a", [](const std::string&) { return DType::kQ8_0; });
  builder.add_kv("tokenizer.ggml.model", "llama");
  const auto result = convert_model(test::write_gguf(folder, builder), folder.path() / "out", {});
  EXPECT_THAT(result.message(), ::testing::HasSubstr("byte-level BPE"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out.partial"));
}

}  // namespace
}  // namespace steadfast
