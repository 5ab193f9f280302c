// Replies split into reasoning, content and calls; and the property that cuts do not matter.
#include "server/output_parser.h"

#include <gtest/gtest.h>

#include <random>

namespace steadfast {
namespace {

struct Parsed {
  std::string reasoning, content;
  std::vector<ToolCall> calls;
  friend bool operator==(const Parsed&, const Parsed&) = default;
};

void add(Parsed& sum, OutputDelta delta) {
  sum.reasoning += delta.reasoning;
  sum.content += delta.content;
  for (ToolCall& call : delta.calls) sum.calls.push_back(std::move(call));
}

Parsed parse(const OutputOptions& options, const std::vector<std::string>& pieces) {
  OutputParser parser(options);
  Parsed sum;
  for (const std::string& piece : pieces) add(sum, parser.push(piece));
  add(sum, parser.finish());
  return sum;
}

Parsed parse(const OutputOptions& options, const std::string& text) { return parse(options, std::vector{text}); }

OutputOptions with(ToolFormat tools, bool thinking = true, bool open = false) {
  OutputOptions options;
  options.tools = tools;
  options.thinking = thinking;
  options.starts_in_reasoning = open;
  return options;
}

TEST(OutputParser, PlainTextIsContent) {
  EXPECT_EQ(parse(with(ToolFormat::kNone, false), "  Hi <think>x</think> \n"),
            (Parsed{"", "  Hi <think>x</think> \n", {}}));
}

TEST(OutputParser, OpenReasoningEndsAtItsMark) {
  EXPECT_EQ(parse(with(ToolFormat::kNone, true, true), "\nLet me see.\n\n</think>\n\nYes.\n"),
            (Parsed{"Let me see.", "Yes.\n", {}}));
}

TEST(OutputParser, ReasoningWithoutItsEndIsAllReasoning) {
  EXPECT_EQ(parse(with(ToolFormat::kNone, true, true), "Let me </thin"), (Parsed{"Let me </thin", "", {}}));
}

TEST(OutputParser, LeadingThinkOpensReasoning) {
  EXPECT_EQ(parse(with(ToolFormat::kNone), "\n<think>\nhm\n</think>\n\nYes"), (Parsed{"hm", "Yes", {}}));
  EXPECT_EQ(parse(with(ToolFormat::kNone), "Yes <think>"), (Parsed{"", "Yes <think>", {}}));
  EXPECT_EQ(parse(with(ToolFormat::kNone), " <thi"), (Parsed{"", " <thi", {}}));
  EXPECT_EQ(parse(with(ToolFormat::kNone), "<think>\n\n</think>\n\nYes"), (Parsed{"", "Yes", {}}));
}

TEST(OutputParser, JsonCalls) {
  const std::string text =
      "I look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\n"
      "<tool_call>{\"name\": \"g\", \"arguments\": {\"s\": \"</tool_call> \\\" }\"}}</tool_call>\n";
  EXPECT_EQ(parse(with(ToolFormat::kJson), text),
            (Parsed{"", "I look.", {{"f", R"({"a":1})"}, {"g", R"({"s":"</tool_call> \" }"})"}}}));
}

TEST(OutputParser, JsonCallAtTheEndNeedsNoMark) {
  EXPECT_EQ(parse(with(ToolFormat::kJson), "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}"),
            (Parsed{"", "", {{"f", "{}"}}}));
}

TEST(OutputParser, MalformedCallsComeBackAsContent) {
  for (const std::string text :
       {"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \n</tool_call> done", "a <tool_call>",
        "<tool_call></tool_call>", "x\n<tool_call>{\"name\": 1}</tool_call>", "<tool_call>[1]</tool_call>y",
        "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>"}) {
    EXPECT_EQ(parse(with(ToolFormat::kJson, false), text), (Parsed{"", text, {}})) << text;
  }
}

TEST(OutputParser, AGoodCallAfterABadOneIsFound) {
  const std::string bad = "<tool_call>{\"name\": \"f, \"arguments\": {}}</tool_call>";
  const std::string good = "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>";
  EXPECT_EQ(parse(with(ToolFormat::kJson), bad + "\n" + good), (Parsed{"", bad, {{"g", "{}"}}}));
}

TEST(OutputParser, TextAfterCallsIsKept) {
  const std::string call = "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>";
  EXPECT_EQ(parse(with(ToolFormat::kJson), call + "\n \nAnd " + call + " so"),
            (Parsed{"", "\n \nAnd so", {{"g", "{}"}, {"g", "{}"}}}));
}

TEST(OutputParser, CallsInReasoningAreReasoning) {
  const std::string call = "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>";
  EXPECT_EQ(parse(with(ToolFormat::kJson, true, true), call + "</think>" + call), (Parsed{call, "", {{"g", "{}"}}}));
}

Json weather_tools() {
  return Json::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
    "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
    "o": {"type": "object"}, "l": {"type": "array"}, "u": {"anyOf": [{"type": "null"}, {"type": "string"}]},
    "t": {"type": ["null", "integer"]}, "e": {"enum": ["a"]}}}}}])");
}

std::string xml(const std::string& parameters) {
  return "<tool_call>\n<function=f>\n" + parameters + "</function>\n</tool_call>";
}

std::string parameter(const std::string& name, const std::string& value) {
  return "<parameter=" + name + ">\n" + value + "\n</parameter>\n";
}

TEST(OutputParser, XmlValuesTakeTheirSchemasTypes) {
  struct Case {
    const char *name, *text, *json;
  };
  const Case cases[] = {{"s", "two\nlines ", R"("two\nlines ")"},
                        {"s", "12", R"("12")"},
                        {"s", "null", R"("null")"},
                        {"i", "12", "12"},
                        {"i", "-3 ", "-3"},
                        {"i", "x", R"("x")"},
                        {"n", "2.5", "2.5"},
                        {"n", "2.0", "2"},
                        {"n", "None", "null"},
                        {"b", "True", "true"},
                        {"b", "false", "false"},
                        {"b", "yes", R"("yes")"},
                        {"o", R"({"a": [1]})", R"({"a":[1]})"},
                        {"o", "{'a': None, 'b': True}", R"({"a":null,"b":true})"},
                        {"l", "('x', \"it's\")", R"(["x","it's"])"},
                        {"l", "[1, 2", R"("[1, 2")"},
                        {"u", "null", "null"},
                        {"u", "x", R"("x")"},
                        {"t", "null", "null"},
                        {"t", "4", "4"},
                        {"e", "a", R"("a")"},
                        {"unknown", "7", R"("7")"},
                        {"s", "a</parameter>b", R"("a</parameter>b")"},
                        {"s", "see </tool_call> there", R"("see </tool_call> there")"},
                        {"s", "x <parameter=q> y", R"("x <parameter=q> y")"}};
  OutputOptions options = with(ToolFormat::kXml);
  options.schemas = weather_tools();
  for (const Case& one : cases) {
    const std::string expected = fmt::format("{{\"{}\":{}}}", one.name, one.json);
    EXPECT_EQ(parse(options, xml(parameter(one.name, one.text))), (Parsed{"", "", {{"f", expected}}})) << one.text;
  }
}

TEST(OutputParser, XmlForgivesMissingMarks) {
  const OutputOptions options = with(ToolFormat::kXml);
  const Parsed both{"", "", {{"f", R"({"a":"1","b":"2"})"}}};
  EXPECT_EQ(parse(options, xml("<parameter=a>\n1\n<parameter=b>\n2\n</parameter>\n")), both);
  EXPECT_EQ(parse(options, xml("<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n")), both);
  EXPECT_EQ(parse(options, "<tool_call>\n<function=f>\n" + parameter("a", "1") + parameter("b", "2")), both);
  EXPECT_EQ(parse(options, "<tool_call>\n<function=f>\n" + parameter("a", "1") + parameter("b", "2") + "</tool_call>"),
            both);
  EXPECT_EQ(parse(options, "<tool_call><function=f>\n</function></tool_call>"), (Parsed{"", "", {{"f", "{}"}}}));
}

TEST(OutputParser, XmlCutShortIsContent) {
  for (const std::string text :
       {"<tool_call>\n<function=f>\n<parameter=a>\n1", "<tool_call>\n<function=f",
        "<tool_call>\n<function=>\n</function>\n</tool_call>", "<tool_call>\nf()\n</tool_call>",
        "<tool_call>\n<function=f>\nstray\n</function>\n</tool_call>"}) {
    EXPECT_EQ(parse(with(ToolFormat::kXml), text), (Parsed{"", text, {}})) << text;
  }
}

std::vector<std::string> samples() {
  const std::string json = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"x </tool_call> y\"}}\n</tool_call>";
  const std::string broken = "<tool_call>\n{\"name\": \"f\n</tool_call>";
  return {"plain text\n\n",
          "\n\n<think>\nwhy\n\nnot\n</think>\n\nBecause é😀.\n",
          "why\n</think>\n\n" + json + "\n" + json + "\n",
          "</think>" + broken + "  " + json + " after ",
          "<thin <think> </think> <tool_cal <tool_call",
          xml(parameter("s", "a </parameter> </tool_call> b") + parameter("i", "3")) + "\n" + xml("") + " tail",
          "<tool_call><tool_call>\n<function=f>\n</function>\n</tool_call></tool_call>",
          "<tool_call>\n<function=f>\n<parameter=a>\n1"};
}

std::vector<OutputOptions> all_options() {
  std::vector<OutputOptions> all;
  for (const ToolFormat tools : {ToolFormat::kNone, ToolFormat::kJson, ToolFormat::kXml}) {
    for (const bool thinking : {false, true}) {
      all.push_back(with(tools, thinking));
      all.push_back(with(tools, true, true));
      all.back().schemas = weather_tools();
    }
  }
  return all;
}

TEST(OutputParser, EveryCutInTwoAndEveryByteAloneGiveTheSame) {
  for (const OutputOptions& options : all_options()) {
    for (const std::string& text : samples()) {
      const Parsed whole = parse(options, text);
      std::vector<std::string> bytes;
      for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        EXPECT_EQ(parse(options, {text.substr(0, cut), text.substr(cut)}), whole) << text << " cut at " << cut;
        if (cut < text.size()) bytes.push_back(text.substr(cut, 1));
      }
      EXPECT_EQ(parse(options, bytes), whole) << text;
    }
  }
}

// Texts of marks and letters in any order, cut anywhere: the same result, and every letter comes out somewhere.
TEST(OutputParser, RandomTextsAndCuts) {
  const std::vector<std::string> words = {"<think>",
                                          "</think>",
                                          "<tool_call>",
                                          "</tool_call>",
                                          "<function=f>",
                                          "</function>",
                                          "<parameter=a>",
                                          "</parameter>",
                                          "{\"name\": \"f\", \"arguments\": {}}",
                                          "\"",
                                          "\\",
                                          "\n",
                                          " ",
                                          "x",
                                          "<",
                                          "<tool",
                                          "é"};
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const int length = static_cast<int>(random() % 24);
    for (int i = 0; i < length; ++i) text += words[random() % words.size()];
    for (const OutputOptions& options : all_options()) {
      const Parsed whole = parse(options, text);
      std::vector<std::string> pieces;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = std::min<std::size_t>(random() % 9 + 1, text.size() - at);
        pieces.push_back(text.substr(at, size));
        at += size;
      }
      ASSERT_EQ(parse(options, pieces), whole) << text;
      const auto letters = [](const std::string& s) { return std::count(s.begin(), s.end(), 'x'); };
      std::string out = whole.reasoning + whole.content;
      for (const ToolCall& call : whole.calls) out += call.arguments;
      ASSERT_EQ(letters(out), letters(text)) << text;
    }
  }
}

// What a user can have a model write must not take quadratic time: marks without end.
TEST(OutputParser, ManyOpenMarksEndSoon) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "<tool_call>";
  for (const ToolFormat tools : {ToolFormat::kJson, ToolFormat::kXml}) {
    EXPECT_EQ(parse(with(tools, false), text), (Parsed{"", text, {}}));
  }
}

}  // namespace
}  // namespace steadfast
