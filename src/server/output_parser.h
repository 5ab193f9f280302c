// A reply's text as it comes, split into reasoning, content and tool calls (model-spec 7.5).
// What is told depends on the text alone, not on how it was cut: the pieces of any two cuts concatenate to the same.
// No text is lost: a malformed tool call comes back as content. Only newlines around reasoning and white space beside
// tool calls are dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/tool_calls.h"

namespace steadfast {

struct OutputOptions {
  bool thinking = false;             // the model has the tokens <think> and </think>
  bool starts_in_reasoning = false;  // the prompt ends with an open <think>
  ToolFormat tools = ToolFormat::kNone;
  Json schemas;  // the request's tools; null: none
};

struct OutputDelta {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> calls;
  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }
};

class OutputParser {
 public:
  explicit OutputParser(OutputOptions options);
  OutputDelta push(std::string_view text);
  OutputDelta finish();  // call once, last

 private:
  enum class State { kStart, kReasoning, kAfterReasoning, kContent, kCall };

  // Each takes from text_ what it can decide on and returns false when it needs more text.
  bool step(OutputDelta& out);
  bool start();
  bool reasoning(OutputDelta& out);
  bool after_reasoning();
  bool content(OutputDelta& out);
  bool call(OutputDelta& out);

  // Position of the block's end mark in text_, npos: not there yet. Remembers how far it has looked.
  std::size_t find_call_end();
  bool json_end_at(std::size_t at);
  bool xml_end_at(std::size_t at) const;
  std::optional<ToolCall> read_call(std::string_view body) const;
  void take_call(ToolCall call, std::size_t bytes, OutputDelta& out);
  void give_up_call(OutputDelta& out);

  OutputOptions options_;
  State state_;
  std::string text_;   // not decided on yet
  std::string space_;  // white space before the call being read
  bool finished_ = false;
  bool begun_ = false;       // reasoning: a character other than a newline was seen
  bool after_call_ = false;  // content: nothing but white space since the last call
  int failures_ = 0;         // calls given up on; past a limit the rest is content
  std::size_t scanned_ = 0;  // of a call: bytes of text_ looked at
  bool in_string_ = false, escaped_ = false;
};

}  // namespace steadfast
