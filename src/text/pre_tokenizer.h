// Pre-tokenising: a text is cut into pieces, each of which BPE merges by itself. Source: model-spec 6.2 and 6.3;
// huggingface/tokenizers src/pre_tokenizers. Steps run in order, each on every piece of the step before.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "text/regex.h"

namespace steadfast {

// What happens to the matches of a Split; the names are those of tokenizer.json.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitStep {
  Regex regex;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // the gaps are the matches
};
struct DigitsStep {
  bool individual = false;  // every numeric character by itself, else runs of them
};
struct PrefixSpaceStep {};  // a piece that starts without a space gets one

class PreTokenizer {
 public:
  using Step = std::variant<SplitStep, DigitsStep, PrefixSpaceStep>;
  static constexpr std::size_t kMaxSteps = 32;

  // The patterns of GPT-2 (ByteLevel with use_regex) and of GGUF's tokenizer.ggml.pre; an unknown name is an error.
  static Result<Regex> gpt2_regex();
  static Result<PreTokenizer> of_gguf(std::string_view pre);
  // What of_gguf() is made of, for writing it down: digits by themselves first where digits_first, then a Split.
  struct GgufPattern {
    std::string_view pattern;
    bool digits_first = false;
    bool is_gpt2 = false;  // the pattern that ByteLevel has of its own
  };
  static std::optional<GgufPattern> gguf_pattern(std::string_view pre);

  Status add(Step step);

  // Cuts texts; one caller's own, while the PreTokenizer is shared.
  class Run {
   public:
    using Sink = std::function<void(std::string_view)>;
    // The sink gets the pieces in order, none empty; a view lives for the call.
    Run(const PreTokenizer& pre_tokenizer, Sink sink);
    void operator()(std::string_view text) { apply(0, text); }  // well-formed UTF-8

   private:
    void apply(std::size_t index, std::string_view text);
    void split(const SplitStep& step, std::size_t index, std::string_view text);
    void digits(const DigitsStep& step, std::size_t index, std::string_view text);

    const std::vector<Step>* steps_;
    std::vector<std::optional<Regex::Matcher>> matchers_;  // one a step that has a pattern
    Sink sink_;
  };

 private:
  std::vector<Step> steps_;
};

}  // namespace steadfast
