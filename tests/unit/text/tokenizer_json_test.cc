// tokenizer.json: what is read, and a sentence for everything that is wrong or not supported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// The sample with one change.
json changed(const char* patch) {
  json result = test::sample_json();
  result.merge_patch(json::parse(patch));
  return result;
}

void expect_error(const json& file, const char* part) {
  const auto result = Tokenizer::from_json(file.dump());
  ASSERT_FALSE(result) << part;
  EXPECT_THAT(result.message(), HasSubstr(part));
}

TEST(TokenizerJson, RefusesByName) {
  expect_error(changed(R"({"model": {"type": "Unigram"}})"), "\"Unigram\"");
  expect_error(changed(R"({"model": {"byte_fallback": true}})"), "byte_fallback");
  expect_error(changed(R"({"model": {"dropout": 0.1}})"), "dropout");
  expect_error(changed(R"({"model": {"end_of_word_suffix": "</w>"}})"), "end_of_word_suffix");
  expect_error(changed(R"({"normalizer": {"type": "NFKC"}})"), "\"NFKC\"");
  expect_error(changed(R"({"decoder": {"type": "Metaspace"}})"), "\"Metaspace\"");
  expect_error(changed(R"({"pre_tokenizer": {"type": "Whitespace"}})"), "\"Whitespace\"");
  expect_error(changed(R"({"pre_tokenizer": null})"), "no ByteLevel");
  expect_error(
      changed(
          R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]}})"),
      "behind ByteLevel");
}

TEST(TokenizerJson, WrongTypes) {
  expect_error(json::array(), "is not an object");
  expect_error(json(), "is not an object");
  expect_error(changed(R"({"model": 3})"), "the model is not an object");
  expect_error(changed(R"({"model": null})"), "no model");
  expect_error(changed(R"({"model": {"type": 1}})"), "\"type\"");
  expect_error(changed(R"({"model": {"vocab": []}})"), "vocab");
  expect_error(changed(R"({"model": {"merges": {}}})"), "merges");
  expect_error(changed(R"({"model": {"merges": [3]}})"), "merge 0");
  expect_error(changed(R"({"model": {"merges": ["abc"]}})"), "merge 0");
  expect_error(changed(R"({"model": {"merges": ["a b c"]}})"), "merge 0");
  expect_error(changed(R"({"model": {"merges": [["a"]]}})"), "merge 0");
  expect_error(changed(R"({"model": {"ignore_merges": "yes"}})"), "ignore_merges");
  expect_error(changed(R"({"normalizer": []})"), "the normalizer is not an object");
  expect_error(changed(R"({"normalizer": {"type": "Sequence"}})"), "list");
  expect_error(changed(R"({"added_tokens": {}})"), "added_tokens");
  expect_error(changed(R"({"added_tokens": [7]})"), "an added token");
  expect_error(changed(R"({"added_tokens": [{"content": "x"}]})"), "\"id\"");
  expect_error(changed(R"({"added_tokens": [{"id": 1, "content": 5}]})"), "\"content\"");
  expect_error(changed(R"({"added_tokens": [{"id": 900, "content": "x", "special": 1}]})"), "\"special\"");
}

TEST(TokenizerJson, WrongSplits) {
  const auto with = [](const char* split) {
    json result = test::sample_json();
    result["pre_tokenizer"]["pretokenizers"][0] = json::parse(split);
    return result;
  };
  expect_error(with(R"({"type": "Split"})"), "pattern");
  expect_error(with(R"({"type": "Split", "pattern": "x", "behavior": "Isolated"})"), "is not an object");
  expect_error(with(R"({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"})"), "regular expression");
  expect_error(with(R"({"type": "Split", "pattern": {"Regex": "x"}, "behavior": "Apart"})"), "\"Apart\"");
  expect_error(with(R"({"type": "Split", "pattern": {"Regex": "x"}, "behavior": "Isolated", "invert": 0})"), "invert");
  expect_error(with(R"({"type": "Split", "pattern": {}, "behavior": "Isolated"})"), "empty");
}

TEST(TokenizerJson, WrongIds) {
  expect_error(changed(R"({"model": {"vocab": {"the": -1}}})"), "no proper id");
  expect_error(changed(R"({"model": {"vocab": {"the": 1.5}}})"), "no proper id");
  expect_error(changed(R"({"model": {"vocab": {"the": "1"}}})"), "no proper id");
  expect_error(changed(R"({"model": {"vocab": {"the": 99999999999999999999}}})"), "no proper id");
  expect_error(changed(R"({"model": {"vocab": {"the": 2147483648}}})"), "no proper id");
  expect_error(changed(R"({"model": {"vocab": {"new": 2147483647}}})"), "id 2147483647");
  expect_error(changed(R"({"model": {"vocab": {"new": 3}}})"), "same id 3");
  expect_error(changed(R"({"added_tokens": [{"id": 3, "content": "<x>"}]})"), "same id 3");
  expect_error(changed(R"({"added_tokens": [{"id": 900, "content": "a"}]})"), "vocabulary gives it");
  expect_error(changed(R"({"added_tokens": [{"id": 900, "content": "x1"}, {"id": 901, "content": "x1"}]})"), "x1");
  expect_error(changed(R"({"model": {"vocab": null}})"), "vocab");
  json empty = test::sample_json();
  empty["model"]["vocab"] = json::object();
  expect_error(empty, "empty");
}

TEST(TokenizerJson, MergesMustNameKnownTokens) {
  expect_error(changed(R"({"model": {"merges": [["nowhere", "a"]]}})"), "\"nowhere\"");
  expect_error(changed(R"({"model": {"merges": ["q q"]}})"), "\"qq\"");
  expect_error(changed(R"({"model": {"unk_token": "<none>"}})"), "<none>");
}

TEST(TokenizerJson, MergesMayBeStrings) {
  json strings = test::sample_json();
  for (auto& merge : strings["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const std::string text = "The engine's reply depends on the request alone.";
  EXPECT_EQ(test::tokenizer_of(strings).encode(text), test::sample_tokenizer().encode(text));
}

TEST(TokenizerJson, BrokenText) {
  const std::string whole = test::sample_json().dump();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_FALSE(Tokenizer::from_json(whole.substr(0, size))) << size;
  }
  EXPECT_FALSE(Tokenizer::from_json(whole + "x"));
  EXPECT_FALSE(Tokenizer::from_json("{\"model\": \"\xff\"}"));
  EXPECT_FALSE(Tokenizer::from_json("{\"model\": 1e999}"));
}

TEST(TokenizerJson, DeepNesting) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += open;
    EXPECT_FALSE(Tokenizer::from_json(text));
  }
  EXPECT_FALSE(Tokenizer::from_json(std::string(1'000'000, '[') + std::string(1'000'000, ']')));
  json normalizer = {{"type", "NFC"}};
  json split = {{"type", "ByteLevel"}};
  for (int i = 0; i < 40; ++i) {
    normalizer = {{"type", "Sequence"}, {"normalizers", json::array({normalizer})}};
    split = {{"type", "Sequence"}, {"pretokenizers", json::array({split})}};
  }
  json file = test::sample_json();
  file["normalizer"] = normalizer;
  expect_error(file, "nested");
  file = test::sample_json();
  file["pre_tokenizer"] = split;
  expect_error(file, "nested");
}

TEST(TokenizerJson, Folders) {
  const test::TempFolder folder;
  const auto none = Tokenizer::from_folder(folder.path());
  ASSERT_FALSE(none);
  EXPECT_THAT(none.message(), HasSubstr("has no tokenizer.json"));
  EXPECT_FALSE(Tokenizer::from_folder(folder.path() / "absent"));
  folder.write("tokenizer.json", test::sample_json().dump());
  const auto plain = Tokenizer::from_folder(folder.path());
  ASSERT_TRUE(plain) << plain.message();
  EXPECT_EQ(plain->encode("<think>"), test::sample_tokenizer().encode("<think>"));

  // A token that only tokenizer_config.json has.
  const std::string id = std::to_string(plain->vocab_size());
  folder.write("tokenizer_config.json",
               R"({"added_tokens_decoder": {")" + id + R"(": {"content": "<extra>", "special": true}}})");
  const auto extended = Tokenizer::from_folder(folder.path());
  ASSERT_TRUE(extended) << extended.message();
  EXPECT_EQ(extended->encode("<extra>"), std::vector<TokenId>{static_cast<TokenId>(plain->vocab_size())});
  for (const char* wrong : {"{", R"({"added_tokens_decoder": {"x": {}}})", R"({"added_tokens_decoder": {"1": 2}})",
                            R"({"added_tokens_decoder": {"999999999": {"content": "y"}}})"}) {
    folder.write("tokenizer_config.json", std::string_view(wrong));
    EXPECT_FALSE(Tokenizer::from_folder(folder.path())) << wrong;
  }
}

}  // namespace
}  // namespace steadfast
