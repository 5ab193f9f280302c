// What golden cases cannot hold: the clock, strings that are not UTF-8, threads sharing a template.
#include "text/jinja/text.h"

#include <gtest/gtest.h>

#include <thread>

#include "golden.h"

namespace steadfast {
namespace {

TEST(JinjaText, StrayBytesCountAsCodePoints) {
  const std::string text = "a\xff\xc3(\xe2\x82";
  EXPECT_EQ(jinja::length(text), 6U);
  EXPECT_EQ(jinja::upper(text), "A\xff\xc3(\xe2\x82");
  EXPECT_EQ(jinja::strip(text, "\x82", jinja::Sides::kBoth), "a\xff\xc3(\xe2");
  EXPECT_EQ(render("{{ x[::-1] }}", {{"x", "a\xff"}}).value(),
            "\xff"
            "a");
}

TEST(JinjaText, StrftimeUsesTheTimeGiven) {
  const auto parsed =
      jinja::Template::parse("{{ strftime_now('%Y') }}|{{ strftime_now('') }}|{{ strftime_now('plain') }}");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->render({}, 86400LL * 365 * 31).value(), "2000||plain");
}

TEST(JinjaText, StrftimeIsInUtcAndTold) {
  const auto parsed = jinja::Template::parse("{% if dated %}{{ strftime_now('%F %T %Z') }}{% endif %}");
  ASSERT_TRUE(parsed);
  const nlohmann::ordered_json yes = true, no = false;
  bool clock_read = false;
  EXPECT_EQ(parsed->render({{"dated", &yes}}, 1'700'000'000, &clock_read).value(), "2023-11-14 22:13:20 GMT");
  EXPECT_TRUE(clock_read);
  EXPECT_EQ(parsed->render({{"dated", &no}}, 1'700'000'000, &clock_read).value(), "");
  EXPECT_FALSE(clock_read);
}

TEST(JinjaText, LaterNamesOfAContextCount) {
  const auto parsed = jinja::Template::parse("{{ a }}");
  const nlohmann::ordered_json first = 1;
  const nlohmann::ordered_json second = 2;
  EXPECT_EQ(parsed->render({{"a", &first}, {"a", &second}}, 0).value(), "2");
}

TEST(JinjaText, ATemplateIsSharedByThreads) {
  const auto parsed =
      jinja::Template::parse("{% for i in range(300) %}{{ 'ab' ~ i }}{% set x = 'cd' %}{{ x | upper }}{% endfor %}");
  ASSERT_TRUE(parsed);
  const std::string expected = parsed->render({}, 0).value();
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) threads.emplace_back([&] { text = parsed->render({}, 0).value(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, expected);
}

}  // namespace
}  // namespace steadfast
