// Seeded mutations of golden templates and their inputs: any outcome is right but a crash, a hang or a broken string.
// Each of kRounds rounds takes two golden sources, cuts, joins, repeats and overwrites pieces of them, and renders.
#include <gtest/gtest.h>

#include <random>

#include "golden.h"
#include "text/chat_template.h"

namespace steadfast {
namespace {

constexpr int kRounds = 6000;

class Mutator {
 public:
  Mutator(std::vector<std::string> sources, unsigned seed) : sources_(std::move(sources)), random_(seed) {}

  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const std::string& source() { return sources_[below(sources_.size())]; }

  std::string mutated() {
    std::string text = source();
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(text);
    if (text.size() > 20000) text.resize(20000);
    return text;
  }

  // A value of the kinds that JSON has, often of a kind that the template does not expect.
  Json value(int depth) {
    switch (below(depth > 0 ? 9 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return static_cast<std::int64_t>(random_()) - 2000000000;
      case 3:
        return static_cast<double>(random_()) / 7.0;
      case 4:
        return std::string(source().substr(0, below(40)));
      case 5:
        return kRoles[below(std::size(kRoles))];
      case 6:
        return Json::array({value(depth - 1), value(depth - 1)});
      default: {
        Json object = Json::object();
        for (std::size_t i = below(5); i > 0; --i) object[kKeys[below(std::size(kKeys))]] = value(depth - 1);
        return object;
      }
    }
  }

  // A message, mostly well formed.
  Json message() {
    Json result = {{"role", kRoles[below(std::size(kRoles))]}, {"content", "text " + std::to_string(below(100))}};
    if (below(3) == 0) result[kKeys[below(std::size(kKeys))]] = value(3);
    if (below(4) == 0) result["tool_calls"] = Json::array({{{"function", {{"name", "f"}, {"arguments", value(2)}}}}});
    if (below(20) == 0) result = value(2);
    return result;
  }

 private:
  static constexpr const char* kRoles[] = {"system",         "user", "assistant", "tool", "<think>x</think>y",
                                           "<tool_response>"};
  static constexpr const char* kKeys[] = {"role",     "content", "tool_calls", "reasoning_content",
                                          "function", "name",    "arguments",  "type",
                                          "text",     "items",   "image"};
  static constexpr const char* kPieces[] = {"{%",
                                            "%}",
                                            "{{",
                                            "}}",
                                            "{#",
                                            "#}",
                                            "-%}",
                                            "{%-",
                                            "|",
                                            "(",
                                            ")",
                                            "[",
                                            "]",
                                            "{",
                                            "}",
                                            "::-1",
                                            " ** 99",
                                            " * 999999",
                                            "loop",
                                            "namespace(",
                                            "\n",
                                            "'",
                                            "\"",
                                            "\\",
                                            "\xff",
                                            "\xf0\x9f\x8e\x89",
                                            ".x",
                                            "[0]",
                                            " if ",
                                            " else ",
                                            " is ",
                                            " not ",
                                            "~",
                                            "range(99999)",
                                            "{% endfor %}",
                                            "{% for x in range(500) %}",
                                            "{% raw %}",
                                            "{% endif %}",
                                            "{% macro m(a) %}{{ m(a) }}",
                                            "{% endmacro %}",
                                            "{{ m(1) }}",
                                            "{% set x = [x, x] %}",
                                            "|join(x)",
                                            "|sort",
                                            "|tojson",
                                            ".split('')",
                                            "recursive",
                                            "1e999",
                                            "{% call m() %}",
                                            "{% endcall %}",
                                            ".format(x)",
                                            "%s",
                                            "'{:>99999}'",
                                            "|batch(0)",
                                            "//0",
                                            "{% break %}",
                                            "\0\1",
                                            ""};

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t size = below(std::min<std::size_t>(text.size() - at, 60) + 1);
    switch (below(7)) {
      case 0:
        text.erase(at, size);
        break;
      case 1:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), size));
        break;
      case 3:
        text.replace(at, size, kPieces[below(std::size(kPieces))]);
        break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      case 5:
        text += source();
        break;
      default: {
        const std::string& other = source();
        text.insert(at, other.substr(below(other.size() + 1), 80));
      }
    }
  }

  std::vector<std::string> sources_;
  std::mt19937 random_;
};

std::vector<std::string> golden_sources() {
  std::vector<std::string> sources;
  for (const Json& golden_case : read_json_file(golden_folder() / "jinja_cases.json")["cases"]) {
    sources.push_back(golden_case["template"].get<std::string>());
  }
  for (const char* file : {"chat_qwen3.json", "chat_smollm2.json", "chat_qwen3_5_rules.json"}) {
    // The whole templates are few among many small ones: they count more often.
    for (int i = 0; i < 30; ++i)
      sources.push_back(read_json_file(golden_folder() / file)["template"].get<std::string>());
  }
  return sources;
}

TEST(JinjaFuzz, MutatedTemplatesNeverCrash) {
  const Json context = read_json_file(golden_folder() / "jinja_cases.json")["context"];
  Mutator mutator(golden_sources(), 20250101);
  int rendered = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto text = render(mutator.mutated(), context);
    if (text) ++rendered;
    EXPECT_TRUE(text || text.message().starts_with("line ")) << text.message();
  }
  EXPECT_GT(rendered, kRounds / 20);
  EXPECT_LT(rendered, kRounds);
}

TEST(JinjaFuzz, StrangeMessagesNeverCrash) {
  std::vector<ChatTemplate> templates;
  for (const char* file : {"chat_qwen3.json", "chat_smollm2.json", "chat_qwen3_5_rules.json"}) {
    auto parsed = ChatTemplate::parse(read_json_file(golden_folder() / file)["template"].get<std::string>());
    ASSERT_TRUE(parsed) << parsed.message();
    templates.push_back(std::move(*parsed));
  }
  Mutator mutator(golden_sources(), 7);
  int rendered = 0;
  for (int round = 0; round < kRounds; ++round) {
    TemplateInput input;
    for (std::size_t i = mutator.below(6); i > 0; --i) input.messages.push_back(mutator.message());
    if (mutator.below(3) == 0) input.tools = Json::array({mutator.value(4)});
    if (mutator.below(3) == 0) input.kwargs["enable_thinking"] = mutator.value(1);
    if (mutator.below(9) == 0) input.tools = mutator.value(3);
    if (templates[mutator.below(templates.size())].render(input)) ++rendered;
  }
  EXPECT_GT(rendered, kRounds / 10);
  EXPECT_LT(rendered, kRounds);
}

}  // namespace
}  // namespace steadfast
