// A small state machine over the text not decided on yet; what might become a mark is held back.
#include "server/output_parser.h"

#include <algorithm>

namespace steadfast {

namespace {

constexpr std::string_view kThink = "<think>", kThinkEnd = "</think>";
constexpr std::string_view kCall = "<tool_call>", kCallEnd = "</tool_call>";
constexpr std::string_view kSpace = " \t\r\n";
constexpr int kMostFailures = 16;  // each costs one more look at the rest of the text

// Length of the longest end of `text` that begins `mark` without being all of it.
std::size_t begun_mark(std::string_view text, std::string_view mark) {
  for (std::size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length) {
    if (text.ends_with(mark.substr(0, length))) return length;
  }
  return 0;
}

// `size` less the run of `letters` before it.
std::size_t before_run(std::string_view text, std::size_t size, std::string_view letters) {
  const auto last = text.substr(0, size).find_last_not_of(letters);
  return last == std::string_view::npos ? 0 : last + 1;
}

}  // namespace

OutputParser::OutputParser(OutputOptions options) : options_(std::move(options)), state_(State::kContent) {
  if (options_.starts_in_reasoning) {
    state_ = State::kReasoning;
  } else if (options_.thinking) {
    state_ = State::kStart;
  }
}

OutputDelta OutputParser::push(std::string_view text) {
  OutputDelta out;
  text_ += text;
  while (step(out)) {
  }
  return out;
}

OutputDelta OutputParser::finish() {
  OutputDelta out;
  finished_ = true;
  while (step(out)) {
  }
  return out;
}

bool OutputParser::step(OutputDelta& out) {
  switch (state_) {
    case State::kStart:
      return start();
    case State::kReasoning:
      return reasoning(out);
    case State::kAfterReasoning:
      return after_reasoning();
    case State::kContent:
      return content(out);
    case State::kCall:
      return call(out);
  }
  return false;
}

bool OutputParser::start() {
  const auto first = text_.find_first_not_of(kSpace);
  const std::string_view rest = first == std::string::npos ? std::string_view{} : std::string_view(text_).substr(first);
  if (rest.starts_with(kThink)) {
    text_.erase(0, first + kThink.size());
    state_ = State::kReasoning;
    return true;
  }
  if (!finished_ && kThink.starts_with(rest)) return false;
  state_ = State::kContent;
  return true;
}

bool OutputParser::reasoning(OutputDelta& out) {
  if (!begun_) {
    text_.erase(0, std::min(text_.find_first_not_of('\n'), text_.size()));
    if (text_.empty()) return false;
  }
  const auto end = text_.find(kThinkEnd);
  const bool found = end != std::string::npos;
  const std::size_t sure = found ? end : text_.size() - (finished_ ? 0 : begun_mark(text_, kThinkEnd));
  const std::size_t told = before_run(text_, sure, "\n");
  begun_ = begun_ || told > 0;
  out.reasoning.append(text_, 0, told);
  if (found) {
    text_.erase(0, end + kThinkEnd.size());
    state_ = State::kAfterReasoning;
    return true;
  }
  text_.erase(0, finished_ ? text_.size() : told);
  return false;
}

bool OutputParser::after_reasoning() {
  text_.erase(0, std::min(text_.find_first_not_of('\n'), text_.size()));
  if (text_.empty()) return false;
  state_ = State::kContent;
  return true;
}

bool OutputParser::content(OutputDelta& out) {
  const bool calls = options_.tools != ToolFormat::kNone && failures_ < kMostFailures;
  const auto open = calls ? text_.find(kCall) : std::string::npos;
  if (open != std::string::npos) {
    const std::size_t told = before_run(text_, open, kSpace);
    out.content.append(text_, 0, told);
    if (told > 0) after_call_ = false;
    space_ = text_.substr(told, open - told);
    text_.erase(0, open + kCall.size());
    state_ = State::kCall;
    scanned_ = 0;
    in_string_ = escaped_ = false;
    return true;
  }
  std::size_t told = text_.size();
  if (calls && !finished_) told = before_run(text_, told - begun_mark(text_, kCall), kSpace);
  if (finished_ && after_call_ && before_run(text_, told, kSpace) == 0) told = 0;
  out.content.append(text_, 0, told);
  if (told > 0) after_call_ = false;
  text_.erase(0, finished_ ? text_.size() : told);
  return false;
}

bool OutputParser::call(OutputDelta& out) {
  const auto end = find_call_end();
  if (end == std::string::npos && !finished_) return false;
  const std::string_view body = std::string_view(text_).substr(0, end);
  if (auto found = read_call(body)) {
    take_call(std::move(*found), end == std::string::npos ? text_.size() : end + kCallEnd.size(), out);
  } else {
    give_up_call(out);
  }
  return true;
}

std::size_t OutputParser::find_call_end() {
  for (; scanned_ < text_.size(); ++scanned_) {
    const std::string_view rest = std::string_view(text_).substr(scanned_);
    if (rest.front() == '<' && rest.size() < kCallEnd.size() && kCallEnd.starts_with(rest)) break;
    const bool mark = rest.starts_with(kCallEnd);
    if (options_.tools == ToolFormat::kJson ? json_end_at(scanned_) && mark : mark && xml_end_at(scanned_)) {
      return scanned_;
    }
  }
  return std::string::npos;
}

// Follows JSON's strings; true outside of them.
bool OutputParser::json_end_at(std::size_t at) {
  const char c = text_[at];
  if (!in_string_) {
    in_string_ = c == '"';
    return !in_string_;
  }
  if (escaped_) {
    escaped_ = false;
  } else if (c == '\\') {
    escaped_ = true;
  } else if (c == '"') {
    in_string_ = false;
  }
  return false;
}

// A mark inside a parameter's value is text: the block's own follows a closed function or parameter.
bool OutputParser::xml_end_at(std::size_t at) const {
  const std::string_view before = std::string_view(text_).substr(0, before_run(text_, at, kSpace));
  const auto first = before.find_first_not_of(kSpace);
  const bool has_function = first != std::string_view::npos && before.substr(first).starts_with("<function=");
  if (!has_function || before.ends_with("</function>") || before.ends_with("</parameter>")) return true;
  return before.find("<parameter=") == std::string_view::npos;
}

std::optional<ToolCall> OutputParser::read_call(std::string_view body) const {
  if (options_.tools == ToolFormat::kJson) return read_json_call(body);
  // Without its end mark a call counts only if it was complete otherwise: one cut short by a limit is content.
  const std::string_view whole = body.substr(0, before_run(body, body.size(), kSpace));
  const bool ended = body.size() < text_.size() || whole.ends_with("</function>") || whole.ends_with("</parameter>");
  return ended ? read_xml_call(body, options_.schemas) : std::nullopt;
}

void OutputParser::take_call(ToolCall found, std::size_t bytes, OutputDelta& out) {
  out.calls.push_back(std::move(found));
  text_.erase(0, bytes);
  space_.clear();
  after_call_ = true;
  state_ = State::kContent;
}

// The block's opening mark becomes content and what follows it is looked at anew: a good call may be inside.
void OutputParser::give_up_call(OutputDelta& out) {
  out.content += space_;
  out.content += kCall;
  space_.clear();
  after_call_ = false;
  ++failures_;
  state_ = State::kContent;
}

}  // namespace steadfast
