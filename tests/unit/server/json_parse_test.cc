// Request bodies as JSON: what is let in, and every way to be refused.
#include "server/json_parse.h"

#include <gtest/gtest.h>

namespace steadfast {
namespace {

std::string error_of(const std::string& text, const JsonLimits& limits = {}) {
  auto parsed = parse_json(text, limits);
  return parsed ? "" : parsed.error().message;
}

TEST(JsonParse, BuildsWhatTheTextSays) {
  auto parsed = parse_json(R"({"b": [1, -2, 2.5, true, null], "a": {"x": "é😀"}, "big": 18446744073709551615})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->dump(), R"({"b":[1,-2,2.5,true,null],"a":{"x":"é😀"},"big":18446744073709551615})");
}

TEST(JsonParse, ScalarsAndEmptyContainersAreValues) {
  for (const std::string text : {"1", "\"x\"", "null", "[]", "{}", "[[],{}]"}) {
    auto parsed = parse_json(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->dump(), text);
  }
}

struct Refused {
  const char* name;
  std::string text;
  const char* part;  // of the message
};

class JsonRefused : public testing::TestWithParam<Refused> {};

TEST_P(JsonRefused, SaysWhy) {
  const std::string error = error_of(GetParam().text);
  EXPECT_NE(error.find(GetParam().part), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(
    All, JsonRefused,
    testing::Values(Refused{"empty", "", "not valid JSON"}, Refused{"open", "{\"a\": 1", "not valid JSON"},
                    Refused{"trailing", "{} x", "not valid JSON"}, Refused{"two", "{} {}", "not valid JSON"},
                    Refused{"comment", "{/* */}", "not valid JSON"}, Refused{"comma", "[1,]", "not valid JSON"},
                    Refused{"nan", "[NaN]", "not valid JSON"}, Refused{"infinity", "[Infinity]", "not valid JSON"},
                    Refused{"quotes", "{'a': 1}", "not valid JSON"}, Refused{"overflow", "[1e999]", "too large"},
                    Refused{"duplicate", R"({"a": 1, "b": 2, "a": 3})", "'a' twice"},
                    Refused{"duplicateInside", R"([{"x": {"y": 1, "y": 1}}])", "'y' twice"},
                    Refused{"badUtf8", "{\"a\": \"\xff\"}", "UTF-8"}, Refused{"cutUtf8", "[\"\xe2\x82\"]", "UTF-8"},
                    Refused{"overlong", "[\"\xc0\xaf\"]", "UTF-8"},
                    Refused{"surrogate", R"(["\ud800"])", "not valid JSON"},
                    Refused{"rawControl", "[\"\n\"]", "not valid JSON"},
                    Refused{"nul", std::string("{}\0x", 4), "NUL"}),
    [](const auto& one) { return one.param.name; });

TEST(JsonParse, NestingIsLimitedExactly) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(error_of(nested(64)), "");
  EXPECT_NE(error_of(nested(65)).find("deeper than 64"), std::string::npos);
  EXPECT_NE(error_of(nested(1'000'000)).find("deeper than 64"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(error_of(objects).find("deeper than 64"), std::string::npos);
}

TEST(JsonParse, ValuesAreLimited) {
  JsonLimits limits;
  limits.values = 4;
  EXPECT_EQ(error_of("[1, 2, 3]", limits), "");
  EXPECT_NE(error_of("[1, 2, 3, 4]", limits).find("more than 4"), std::string::npos);
}

TEST(JsonParse, ErrorsQuoteKeysWithoutControlCharacters) {
  const std::string error = error_of("{\"a\\nb\\u0007\": 1, \"a\\nb\\u0007\": 2}");
  EXPECT_NE(error.find("'a?b?' twice"), std::string::npos) << error;
}

}  // namespace
}  // namespace steadfast
