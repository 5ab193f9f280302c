// What an untrusted template or value can reach: limits with clear errors, in bounded time, and no crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden.h"
#include "text/jinja/limits.h"

namespace steadfast {
namespace {

using testing::HasSubstr;

std::string repeat(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string error_of(std::string_view source,
                     const nlohmann::ordered_json& context = nlohmann::ordered_json::object()) {
  const auto text = render(source, context);
  EXPECT_FALSE(text) << source.substr(0, 200) << " gives " << (text ? text->substr(0, 200) : "");
  return text.message();
}

TEST(JinjaLimits, SourceSizeAndNesting) {
  EXPECT_THAT(error_of(std::string(jinja::kMaxTemplateBytes + 1, 'x')), HasSubstr("the template is larger than"));
  EXPECT_TRUE(render(std::string(jinja::kMaxTemplateBytes, 'x'), {}));
  for (const std::string opening : {"(", "[", "{1:", "-", "not ", "x[", "x(", "x|f(", "1 if ", "x is y("}) {
    EXPECT_THAT(error_of("{{ " + repeat(opening, 20000)), HasSubstr("nests more than")) << opening;
  }
  EXPECT_THAT(error_of("{{ 1" + repeat(" + 1", 20000) + " }}"), HasSubstr("nests more than 200 levels"));
  EXPECT_THAT(error_of("{{ x" + repeat(".y", 20000) + " }}"), HasSubstr("nests more than 200 levels"));
  EXPECT_THAT(error_of("{{ x" + repeat("|e", 20000) + " }}"), HasSubstr("nests more than 200 levels"));
  EXPECT_THAT(error_of(repeat("{% if 1 %}", 20000)), HasSubstr("nests more than 100 levels"));
  EXPECT_THAT(error_of(repeat("{% macro m() %}", 20000)), HasSubstr("nests more than 100 levels"));
  EXPECT_THAT(error_of("{% set " + repeat("(", 20000)), HasSubstr("nests more than 100 levels"));
  EXPECT_TRUE(render("{{ 1" + repeat(" ~ 1", 20000) + " }}", {}));
  EXPECT_TRUE(render("{{ " + repeat("(", 90) + "1" + repeat(")", 90) + " }}", {}));
}

TEST(JinjaLimits, EvaluationDepth) {
  EXPECT_THAT(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("evaluation nests more than"));
  EXPECT_THAT(error_of("{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{{ caller() }}{% endmacro %}{{ f() }}"),
              HasSubstr("evaluation nests more than"));
  EXPECT_THAT(error_of("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
              HasSubstr("evaluation nests more than"));
  EXPECT_TRUE(render("{% macro f(n) %}{{ f(n - 1) if n }}{% endmacro %}{{ f(50) }}", {}));
}

TEST(JinjaLimits, ValueDepth) {
  EXPECT_THAT(error_of("{% set ns = namespace(x=1) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}"),
              HasSubstr("nested more than 100 deep"));
  nlohmann::ordered_json deep = 1;
  for (int i = 0; i < 200; ++i) deep = nlohmann::ordered_json::array({std::move(deep)});
  EXPECT_THAT(error_of("{{ x }}", {{"x", deep}}), HasSubstr("nested more than 100"));
  EXPECT_TRUE(render(
      "{% set a = namespace() %}{% for i in range(1000) %}{% set b = namespace(x=a) %}{% set b.y = b %}{% endfor %}",
      {}));
  EXPECT_THAT(
      error_of("{% set n = namespace() %}{% for i in range(100) %}{% set n.x = namespace(x=n.x) %}{% endfor %}{{ n }}"),
      HasSubstr("namespaces are nested"));
}

TEST(JinjaLimits, ValuesThatGrowByShare) {
  const std::string doubling =
      "{% set ns = namespace(x=['']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
  EXPECT_THAT(error_of(doubling + "{{ ns.x == ns.x }}"), HasSubstr("holds too much"));
  EXPECT_THAT(
      error_of("{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"),
      HasSubstr("more than 64 MiB"));
  EXPECT_THAT(
      error_of("{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"),
      HasSubstr("holds too much"));
}

TEST(JinjaLimits, Steps) {
  const std::string loop = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(error_of(loop), HasSubstr("steps"));
  EXPECT_THAT(
      error_of("{% for a in range(100000) %}{{ text in text }}{% endfor %}", {{"text", std::string(1 << 20, 'a')}}),
      HasSubstr("steps"));
  EXPECT_THAT(error_of("{% for a in range(100000) %}{% set b = text | upper %}{% endfor %}",
                       {{"text", std::string(1 << 20, 'a')}}),
              HasSubstr("steps"));
  EXPECT_THAT(error_of("{% for a in range(100000) %}{{ x | sort }}{% endfor %}", {{"x", std::vector<int>(10000, 1)}}),
              testing::AnyOf(HasSubstr("steps"), HasSubstr("64 MiB")));
}

TEST(JinjaLimits, RepetitionAndPower) {
  EXPECT_THAT(error_of("{{ 'x' * 100000000 }}"), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_of("{{ 'x' * 9223372036854775807 }}"), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_of("{{ 'x' * 10 ** 30 }}"), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_of("{{ [1] * 1000000000 }}"), HasSubstr("too much memory"));
  EXPECT_THAT(error_of("{{ [1, 2] * 10 ** 30 }}"), HasSubstr("too much memory"));
  EXPECT_THAT(error_of("{{ 10 ** 1000 }}"), HasSubstr("127 bits"));
  EXPECT_THAT(error_of("{{ 2 ** 10 ** 30 }}"), HasSubstr("127 bits"));
  EXPECT_THAT(error_of("{{ 999999999999999999999999999999999999999999999 }}"), HasSubstr("127 bits"));
  EXPECT_THAT(error_of("{{ (2 ** 126) * 4 }}"), HasSubstr("127 bits"));
  EXPECT_THAT(error_of("{{ range(0, 10 ** 30) }}"), HasSubstr("too big"));
  EXPECT_THAT(error_of("{{ range(100001) }}"), HasSubstr("too big"));
  EXPECT_EQ(*render("{{ range(10 ** 30, 10 ** 30 + 2) | length }}", {}), "0");
}

TEST(JinjaLimits, TextMethods) {
  const nlohmann::ordered_json context = {{"big", std::string(1 << 20, 'a')}};
  EXPECT_THAT(error_of("{{ big.replace('a', big) }}", context), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_of("{{ big.replace('', big) }}", context), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_of("{{ big | replace('a', big) }}", context), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_of("{{ big.join(big) }}", context), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_of("{{ big | join(big) }}", context), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_of("{{ 'a'.center(10 ** 12) }}"), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_of("{{ 'a'.zfill(10 ** 12) }}"), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_of("{{ '\t'.expandtabs(10 ** 12) }}"), HasSubstr("tab size"));
  EXPECT_THAT(error_of("{{ '{:1000000000}'.format(1) }}"), HasSubstr("width"));
  EXPECT_THAT(error_of("{{ '%1000000000d' % 1 }}"), HasSubstr("width"));
  EXPECT_THAT(error_of("{{ '%.*f' % (1000000000, 1.5) }}"), HasSubstr("width or precision"));
  EXPECT_THAT(error_of("{{ '{:.5000f}'.format(1.5) }}"), HasSubstr("precision"));
  EXPECT_THAT(error_of("{{ [[1]] | tojson(indent=1000000) }}"), HasSubstr("indent"));
  EXPECT_THAT(error_of("{{ 'a' | indent(1000000000) }}"), HasSubstr("indent"));
  EXPECT_THAT(error_of("{{ [1] | batch(1000000000, 0) | list }}"), HasSubstr("batch"));
  EXPECT_THAT(error_of("{{ strftime_now('%' * 2000) }}"), HasSubstr("1000 bytes"));
  EXPECT_THAT(error_of("{{ strftime_now('%99999999Y') }}"), HasSubstr("strftime_now"));
  EXPECT_EQ(
      render("{{ big.split('a') | length }} {{ big.split() | length }} {{ big.rsplit(none, 5) | length }}", context)
          .value(),
      "1048577 1 1");
}

TEST(JinjaLimits, Output) {
  EXPECT_THAT(error_of("{% for i in range(100) %}{{ big }}{% endfor %}", {{"big", std::string(1 << 20, 'a')}}),
              HasSubstr("more than 64 MiB"));
}

TEST(JinjaLimits, ReallyLargeInputIsFine) {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  for (int i = 0; i < 5000; ++i) messages.push_back({{"role", "user"}, {"content", std::string(5000, 'a')}});
  const auto text =
      render("{% for m in messages %}{{ m.role ~ '\n' + m.content | trim }}{% endfor %}", {{"messages", messages}});
  ASSERT_TRUE(text) << text.message();
  EXPECT_EQ(text->size(), 5000U * 5005U);
}

}  // namespace
}  // namespace steadfast
