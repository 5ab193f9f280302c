// Marks, rendering, and encoding in segments.
#include "server/prompt_encoder.h"

#include <algorithm>

#include "text/utf8.h"

namespace steadfast {

namespace {

// Special tokens, and tags like <think>: what a template uses to tell its parts from their contents. Added tokens that
// are runs of spaces or words are text like any other.
bool is_control_text(std::string_view text, bool special) {
  if (utf8_step(text, 0).bytes == text.size()) return false;
  return special || (text.starts_with('<') && text.ends_with('>'));
}

std::string last_character(const std::string& text) {
  std::size_t start = text.size() - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return text.substr(start);
}

void add_once(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

bool has(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Calls visit(string) for every string and key of the value, until it returns true.
template <typename Visit>
bool any_string(const Json& value, const Visit& visit) {
  if (value.is_string()) return visit(std::string_view(value.get_ref<const std::string&>()));
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      if (visit(std::string_view(key)) || any_string(member, visit)) return true;
    }
  } else if (value.is_array()) {
    return std::any_of(value.begin(), value.end(), [&](const Json& item) { return any_string(item, visit); });
  }
  return false;
}

constexpr char32_t kFirstMark = 0x10F500, kLastMark = 0x10FFFD;

// A private-use character that the request does not use itself; empty: it uses them all.
std::string free_mark(const TemplateInput& input) {
  std::vector<bool> used(kLastMark - kFirstMark + 1, false);
  const auto note = [&](std::string_view text) {
    for (auto at = text.find('\xF4'); at != std::string_view::npos; at = text.find('\xF4', at + 1)) {
      const char32_t code = utf8_step(text, at).code;
      if (code >= kFirstMark && code <= kLastMark) used[code - kFirstMark] = true;
    }
    return false;
  };
  for (const Json* part : {&input.messages, &input.tools, &input.kwargs}) any_string(*part, note);
  const auto free = std::find(used.begin(), used.end(), false);
  std::string mark;
  if (free != used.end()) append_utf8(mark, kFirstMark + static_cast<char32_t>(free - used.begin()));
  return mark;
}

}  // namespace

PromptEncoder::PromptEncoder(const Tokenizer& tokenizer, const ChatTemplate& chat_template)
    : tokenizer_(tokenizer), template_(chat_template), is_control_(tokenizer.vocab_size(), false) {
  for (std::size_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string text(tokenizer.token_text(id));
    if (text.empty() || tokenizer.added_token(text) != id || !is_control_text(text, tokenizer.is_special(id))) continue;
    is_control_[i] = true;
    const std::string first = text.substr(0, utf8_step(text, 0).bytes), last = last_character(text);
    add_once(first_, first);
    add_once(last_, last);
    edge_[static_cast<unsigned char>(first.front())] = edge_[static_cast<unsigned char>(last.front())] = true;
    controls_.push_back({text, tokenizer.is_special(id)});
  }
  std::stable_sort(controls_.begin(), controls_.end(),
                   [](const Control& a, const Control& b) { return a.text.size() > b.text.size(); });
}

bool PromptEncoder::needs_marks(const Json& value) const {
  return any_string(value, [&](std::string_view text) {
    return std::any_of(text.begin(), text.end(), [&](char c) { return edge_[static_cast<unsigned char>(c)]; });
  });
}

std::string PromptEncoder::marked(const std::string& text, std::string_view mark, bool tags_too) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (!edge_[static_cast<unsigned char>(text[at])]) {
      out += text[at++];
      continue;
    }
    const std::string_view rest = std::string_view(text).substr(at);
    if (!tags_too) {
      const auto tag = std::find_if(controls_.begin(), controls_.end(), [&](const Control& control) {
        return !control.special && rest.starts_with(control.text);
      });
      if (tag != controls_.end()) {
        out += tag->text;
        at += tag->text.size();
        continue;
      }
    }
    const std::string_view letter = rest.substr(0, utf8_step(text, at).bytes);
    if (has(last_, letter)) out += mark;
    out += letter;
    if (has(first_, letter)) out += mark;
    at += letter.size();
  }
  return out;
}

void PromptEncoder::mark_all(Json& value, std::string_view mark, bool tags_too) const {
  if (value.is_string()) {
    value = marked(value.get_ref<const std::string&>(), mark, tags_too);
  } else if (value.is_array()) {
    for (Json& item : value) mark_all(item, mark, tags_too);
  } else if (value.is_object()) {
    Json copy = Json::object();
    for (auto& [key, member] : value.items()) {
      mark_all(member, mark, tags_too);
      copy.get_ref<Json::object_t&>().Container::emplace_back(marked(key, mark, tags_too), std::move(member));
    }
    value = std::move(copy);
  }
}

// System and assistant texts come from the program that asks and from the model: their tags are meant (templates look
// for </think> in an assistant's text). A user's or a tool's text is anybody's.
TemplateInput PromptEncoder::marked_input(const TemplateInput& input, std::string_view mark) const {
  TemplateInput out = input;
  for (Json& message : out.messages) {
    const std::string role = message.value("role", "");
    mark_all(message, mark, role == "user" || role == "tool");
  }
  mark_all(out.tools, mark, false);
  mark_all(out.kwargs, mark, true);
  return out;
}

std::vector<PromptEncoder::Match> PromptEncoder::matches(std::string_view text,
                                                         std::span<const std::size_t> marks) const {
  std::vector<Match> found;
  for (std::size_t at = 0; at < text.size();) {
    if (!edge_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const auto control = std::find_if(controls_.begin(), controls_.end(),
                                      [&](const Control& one) { return text.substr(at).starts_with(one.text); });
    if (control == controls_.end()) {
      ++at;
      continue;
    }
    const std::size_t end = at + control->text.size();
    const auto mark = std::upper_bound(marks.begin(), marks.end(), at);
    const bool is_marked = mark != marks.end() && *mark < end;
    found.push_back({at, end, is_marked});
    at = is_marked ? at + 1 : end;
  }
  return found;
}

// The text is cut at the template's own control tokens. Stretches with a client's token inside are encoded without
// matching any; all that lies between such stretches, in one piece as usual.
std::vector<TokenId> PromptEncoder::encode_guarded(std::string_view text, std::span<const Match> found) const {
  std::vector<TokenId> ids;
  const auto append = [&](std::size_t begin, std::size_t end, bool match_special) {
    if (begin == end) return;
    const auto more = tokenizer_.encode(text.substr(begin, end - begin), {match_special});
    ids.insert(ids.end(), more.begin(), more.end());
  };
  std::size_t done = 0, stretch = 0;  // encoded up to; where the stretch since the last control token begins
  bool guarded = false;
  const auto close_stretch = [&](std::size_t end) {
    if (!guarded) return;
    append(done, stretch, true);
    append(stretch, end, false);
    done = end;
    guarded = false;
  };
  for (const Match& match : found) {
    if (match.marked) {
      guarded = true;
      continue;
    }
    close_stretch(match.begin);
    stretch = match.end;
  }
  close_stretch(text.size());
  append(done, text.size(), true);
  return ids;
}

std::size_t PromptEncoder::count_controls(std::span<const TokenId> ids) const {
  return static_cast<std::size_t>(
      std::count_if(ids.begin(), ids.end(), [&](TokenId id) { return is_control_[static_cast<std::size_t>(id)]; }));
}

Outcome<EncodedPrompt> PromptEncoder::encode_marked(const TemplateInput& input, EncodedPrompt plain,
                                                    std::string_view mark) const {
  auto rendered = template_.render(marked_input(input, mark));
  if (!rendered)
    return ApiError{400, fmt::format("the model's chat template refused the messages: {}", rendered.message()),
                    "messages", ""};
  std::string text;
  std::vector<std::size_t> marks;
  const std::string& with_marks = *rendered;
  for (std::size_t at = 0;;) {
    const auto next = with_marks.find(mark, at);
    text.append(with_marks, at, next == std::string::npos ? next : next - at);
    if (next == std::string::npos) break;
    marks.push_back(text.size());
    at = next + mark.size();
  }
  const auto found = matches(text, marks);
  const auto own =
      static_cast<std::size_t>(std::count_if(found.begin(), found.end(), [](const Match& m) { return !m.marked; }));
  // A template that looks at its contents' tags may render marked ones differently; without such tags it has no cause.
  if (own == found.size() && matches(plain.text, {}).size() == own) text = std::move(plain.text);
  EncodedPrompt prompt{std::move(text), {}, plain.clock_read};
  prompt.ids = own == found.size() ? tokenizer_.encode(prompt.text) : encode_guarded(prompt.text, found);
  if (count_controls(prompt.ids) > own) {
    return ApiError{400,
                    "the messages hold a control token of this model in a form that cannot be kept apart; reword it",
                    "messages", ""};
  }
  return prompt;
}

Outcome<EncodedPrompt> PromptEncoder::encode(const TemplateInput& input) const {
  EncodedPrompt prompt;
  auto rendered = template_.render(input, &prompt.clock_read);
  if (!rendered)
    return ApiError{400, fmt::format("the model's chat template refused the messages: {}", rendered.message()),
                    "messages", ""};
  prompt.text = std::move(*rendered);
  if (!needs_marks(input.messages) && !needs_marks(input.tools) && !needs_marks(input.kwargs)) {
    prompt.ids = tokenizer_.encode(prompt.text);
    return prompt;
  }
  const std::string mark = free_mark(input);
  if (mark.empty())
    return ApiError{400, "the messages use every private-use character; leave them out", "messages", ""};
  return encode_marked(input, std::move(prompt), mark);
}

}  // namespace steadfast
