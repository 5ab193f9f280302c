// The steps of pre-tokenising. A step hands its pieces on one by one: no list of them is kept, however long the text.
#include "text/pre_tokenizer.h"

#include <utf8proc.h>

#include <array>

#include "text/utf8.h"

namespace steadfast {
namespace {

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct NamedPattern {
  std::string_view name;
  std::string_view pattern;
  bool digits_first;  // every numeric character is a piece before the pattern sees the rest
};
constexpr NamedPattern kNamed[] = {
    {"smollm", kGpt2, true},       {"gpt-2", kGpt2, false},    {"qwen2", kQwen2, false},     {"qwen35", kQwen35, false},
    {"llama-bpe", kLlama3, false}, {"llama3", kLlama3, false}, {"llama-v3", kLlama3, false},
};

bool is_numeric(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

// Joins matches and gaps, given in order, as a SplitBehavior says, and emits the pieces.
template <typename Emit>
class Joiner {
 public:
  Joiner(SplitBehavior behavior, Emit emit) : behavior_(behavior), emit_(emit) {}

  void segment(std::size_t begin, std::size_t end, bool is_match) {
    switch (behavior_) {
      case SplitBehavior::kRemoved:
        if (!is_match) emit_(begin, end);
        return;
      case SplitBehavior::kIsolated:
        emit_(begin, end);
        return;
      case SplitBehavior::kContiguous:
        return hold(begin, end, is_match, is_match == held_match_);
      case SplitBehavior::kMergedWithPrevious:
        return hold(begin, end, is_match, is_match && !held_match_);
      case SplitBehavior::kMergedWithNext:
        return hold(begin, end, is_match, !is_match && held_match_);
    }
  }
  void finish() {
    if (held_) emit_(held_begin_, held_end_);
  }

 private:
  void hold(std::size_t begin, std::size_t end, bool is_match, bool joins) {
    if (held_ && !joins) emit_(held_begin_, held_end_);
    if (!held_ || !joins) held_begin_ = begin;
    held_ = true;
    held_end_ = end;
    held_match_ = is_match;
  }

  SplitBehavior behavior_;
  Emit emit_;
  bool held_ = false, held_match_ = false;
  std::size_t held_begin_ = 0, held_end_ = 0;
};

}  // namespace

Result<Regex> PreTokenizer::gpt2_regex() { return Regex::compile(kGpt2); }

Result<PreTokenizer> PreTokenizer::of_gguf(std::string_view pre) {
  std::string known;
  for (const NamedPattern& named : kNamed) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", named.name);
    if (named.name != pre) continue;
    PreTokenizer result;
    if (named.digits_first) result.steps_.emplace_back(DigitsStep{true});
    auto regex = Regex::compile(named.pattern);
    if (!regex) return regex.status();
    result.steps_.emplace_back(SplitStep{std::move(*regex)});
    return result;
  }
  return Status::error("pre-tokenizer \"{}\" is not one of {}: use a GGUF file made with one of these", pre, known);
}

std::optional<PreTokenizer::GgufPattern> PreTokenizer::gguf_pattern(std::string_view pre) {
  for (const NamedPattern& named : kNamed)
    if (named.name == pre) return GgufPattern{named.pattern, named.digits_first, named.pattern == kGpt2};
  return std::nullopt;
}

Status PreTokenizer::add(Step step) {
  if (steps_.size() == kMaxSteps) return Status::error("the pre-tokenizer has more than {} steps", kMaxSteps);
  steps_.push_back(std::move(step));
  return Status::ok();
}

PreTokenizer::Run::Run(const PreTokenizer& pre_tokenizer, Sink sink)
    : steps_(&pre_tokenizer.steps_), sink_(std::move(sink)) {
  for (const Step& step : *steps_) {
    matchers_.emplace_back();
    if (const auto* split = std::get_if<SplitStep>(&step)) matchers_.back().emplace(split->regex);
  }
}

void PreTokenizer::Run::apply(std::size_t index, std::string_view text) {
  if (text.empty()) return;
  if (index == steps_->size()) return sink_(text);
  const Step& step = (*steps_)[index];
  if (const auto* split_step = std::get_if<SplitStep>(&step)) return split(*split_step, index, text);
  if (const auto* digits_step = std::get_if<DigitsStep>(&step)) return digits(*digits_step, index, text);
  if (text.front() == ' ') return apply(index + 1, text);
  apply(index + 1, " " + std::string(text));
}

void PreTokenizer::Run::split(const SplitStep& step, std::size_t index, std::string_view text) {
  Joiner joiner(step.behavior,
                [&](std::size_t begin, std::size_t end) { apply(index + 1, text.substr(begin, end - begin)); });
  std::size_t done = 0, from = 0;
  while (from <= text.size()) {
    const auto match = matchers_[index]->find(text, from);
    if (!match) break;
    if (match->end == match->begin) {  // an empty match cuts, and the search goes on behind the next character
      from = match->end < text.size() ? match->end + utf8_step(text, match->end).bytes : match->end + 1;
      if (match->begin > done) joiner.segment(done, match->begin, step.invert);
      done = match->begin;
      continue;
    }
    if (match->begin > done) joiner.segment(done, match->begin, step.invert);
    joiner.segment(match->begin, match->end, !step.invert);
    done = from = match->end;
  }
  if (done < text.size()) joiner.segment(done, text.size(), step.invert);
  joiner.finish();
}

void PreTokenizer::Run::digits(const DigitsStep& step, std::size_t index, std::string_view text) {
  Joiner joiner(step.individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
                [&](std::size_t begin, std::size_t end) { apply(index + 1, text.substr(begin, end - begin)); });
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step character = utf8_step(text, at);
    const std::size_t next = at + character.bytes;
    if (is_numeric(character.code)) {
      if (at > done) joiner.segment(done, at, false);
      joiner.segment(at, next, true);
      done = next;
    }
    at = next;
  }
  if (done < text.size()) joiner.segment(done, text.size(), false);
  joiner.finish();
}

}  // namespace steadfast
