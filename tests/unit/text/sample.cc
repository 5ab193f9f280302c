// The sample tokenizer and the dice.
#include "sample.h"

#include <gtest/gtest.h>

#include <fstream>

#include "text/utf8.h"

namespace steadfast::test {

std::string golden_path(const std::string& name) { return STEADFAST_SOURCE_DIR "/tests/golden/text/" + name; }
std::string shared_path(const std::string& name) { return STEADFAST_SOURCE_DIR "/../shared/data/" + name; }

nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  auto json = nlohmann::json::parse(file, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << path;
  return json;
}

const nlohmann::json& sample_json() {
  static const nlohmann::json json = read_json(golden_path("tokenizer.json"));
  return json;
}

Tokenizer tokenizer_of(const nlohmann::json& json) {
  auto tokenizer = Tokenizer::from_json(json.dump());
  EXPECT_TRUE(tokenizer) << tokenizer.message();
  return std::move(*tokenizer);
}

Tokenizer sample_tokenizer() { return tokenizer_of(sample_json()); }

GgufBuilder gguf_of(const nlohmann::json& json, const std::string& pre) {
  const auto& vocabulary = json["model"]["vocab"];
  const auto& added = json["added_tokens"];
  std::vector<std::string> tokens(vocabulary.size() + added.size()), merges;
  std::vector<std::int32_t> types(tokens.size(), 1);
  for (const auto& [text, id] : vocabulary.items()) tokens[id.get<std::size_t>()] = text;
  for (const auto& token : added) {
    const auto id = token["id"].get<std::size_t>();
    tokens[id] = token["content"].get<std::string>();
    types[id] = token["special"].get<bool>() ? 3 : 4;
  }
  for (const auto& merge : json["model"]["merges"]) {
    merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  GgufBuilder builder;
  builder.add_kv("tokenizer.ggml.model", "gpt2").add_kv("tokenizer.ggml.pre", pre);
  builder.add_kv("tokenizer.ggml.tokens", tokens).add_kv("tokenizer.ggml.token_type", types);
  builder.add_kv("tokenizer.ggml.merges", merges);
  return builder;
}

std::size_t roll(Dice& dice, std::size_t sides) { return dice() % sides; }

std::string random_text(Dice& dice, std::size_t parts) {
  static const std::vector<std::string> kParts = {
      " ",   "  ",     "\n",  "\r\n",     "\t",           "word",       "the",     " engine",
      "I'm", "1234",   "½",   "café",     "e\u0301",      "\u0323",     "नमस्ते",    "한국",
      "人",  "\u3000", "🚀",   "👩\u200d👩", "<|im_start|>", "<|im_end|>", "<think>", "</think>",
      "[W]", "[L]",    "[R]", "...",      "{}();"};
  std::string text;
  for (std::size_t i = 0; i < parts; ++i) {
    if (roll(dice, 4) != 0) {
      text += kParts[roll(dice, kParts.size())];
      continue;
    }
    char32_t code = static_cast<char32_t>(roll(dice, roll(dice, 2) ? 0x110000 : 0x800));
    if (code >= 0xD800 && code < 0xE000) code = 'x';
    append_utf8(text, code);
  }
  return text;
}

std::string random_bytes(Dice& dice, std::size_t count) {
  static constexpr unsigned char kEdges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2,
                                             0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<char>(roll(dice, 2) ? kEdges[roll(dice, std::size(kEdges))] : roll(dice, 256)));
  }
  return bytes;
}

}  // namespace steadfast::test
