// What errors say: the line, the construct, and Python's words where Python has some.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden.h"

namespace steadfast {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(std::string_view source) {
  const auto text = render(source, {{"name", "Ada"}, {"nothing", nullptr}, {"numbers", {1, 2}}});
  EXPECT_FALSE(text) << source << " gives " << (text ? *text : "");
  return text.message();
}

TEST(JinjaErrors, NameTheLine) {
  EXPECT_THAT(error_of("a\nb\n{{ missing.x }}\n"), StartsWith("line 3: 'missing' is undefined"));
  EXPECT_THAT(error_of("{% if name %}\n\n{{ 1 + 'a' }}{% endif %}"), StartsWith("line 3: unsupported operand"));
  EXPECT_THAT(error_of("{% macro f(x) %}\n{{ x.y.z }}\n{% endmacro %}\n\n{{ f({}) }}"),
              StartsWith("line 2: 'dict object'"));
  EXPECT_THAT(error_of("{{\n1 +\nnone }}"), StartsWith("line 2: "));
  EXPECT_THAT(error_of("\r\n\r{% nope %}"), StartsWith("line 3: unknown statement 'nope'"));
  EXPECT_THAT(error_of("x\n{{ raise_exception('no user') }}"), testing::StrEq("line 2: no user"));
  EXPECT_THAT(error_of("{# a\nb #}\n{% raw %}\n{% endraw %}\n{{ 5 | nope }}"),
              StartsWith("line 5: there is no filter named 'nope'"));
  EXPECT_THAT(error_of("a -\n\n{%- if 1 -%}\n\n{{ 1 / 0 }}{% endif %}"), StartsWith("line 5: division by zero"));
}

TEST(JinjaErrors, NameUnknownConstructs) {
  for (const std::string tag : {"extends 'x'", "block b", "include 'x'", "import 'x' as y", "from 'x' import y",
                                "autoescape true", "do 1", "trans"}) {
    EXPECT_THAT(error_of("\n{% " + tag + " %}"),
                HasSubstr("line 2: the statement '" + tag.substr(0, tag.find(' ')) + "' is not supported"));
  }
  EXPECT_THAT(error_of("{{ name is nope }}"), HasSubstr("there is no test named 'nope'"));
  EXPECT_THAT(error_of("{{ name.encode('utf8') }}"), HasSubstr("'str object' has no attribute 'encode'"));
  EXPECT_THAT(error_of("{% set x = 1"), HasSubstr("expected '%}', got the end of the template"));
  EXPECT_THAT(error_of("{% for x in numbers %}"), HasSubstr("'{% endfor %}' is missing"));
}

TEST(JinjaErrors, RefuseToChangeValues) {
  EXPECT_THAT(error_of("{{ numbers.append(3) }}"),
              HasSubstr("access to attribute 'append' of 'list' object is unsafe"));
  EXPECT_THAT(error_of("{{ {}.update({}) }}"), HasSubstr("access to attribute 'update' of 'dict' object is unsafe"));
}

TEST(JinjaErrors, NameArguments) {
  EXPECT_THAT(error_of("{{ name | replace('a') }}"), HasSubstr("replace() needs the argument 'new'"));
  EXPECT_THAT(error_of("{{ name | trim(1, 2) }}"), HasSubstr("trim() takes at most 1 argument(s), 2 given"));
  EXPECT_THAT(error_of("{{ name | default(nope=1) }}"), HasSubstr("default() has no argument named 'nope'"));
  EXPECT_THAT(error_of("{{ name | default(1, default_value=2) }}"),
              HasSubstr("two values for the argument 'default_value'"));
}

TEST(JinjaErrors, CountsOfWhatABreakLeftOver) {
  const std::string loop =
      "{% set ns = namespace() %}{% for x in [1, 2, 'a'] if x + 1 %}{% set ns.l = loop %}{% break %}{% endfor %}";
  EXPECT_THAT(error_of(loop + "{{ ns.l.length }}"), HasSubstr("loop.length is not known after a break"));
  EXPECT_THAT(error_of(loop + "{{ ns.l.revindex }}"), HasSubstr("loop.length is not known after a break"));
}

TEST(JinjaErrors, RefuseInvalidUtf8) {
  EXPECT_THAT(error_of("ok\n\xff{{ name }}"), HasSubstr("line 2: the template is not valid UTF-8"));
  EXPECT_THAT(error_of("\xed\xa0\x80"), HasSubstr("not valid UTF-8"));
}

}  // namespace
}  // namespace steadfast
