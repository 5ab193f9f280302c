// Sampling options and prompts of the commands.
#include "prompt_options.h"

namespace steadfast {

void SamplingOptions::add_to(CLI::App& command) {
  command.add_option("--max-tokens", max_tokens, "The most tokens of a reply")->capture_default_str();
  command.add_option("--temperature", temperature, "0 draws greedily");
  command.add_option("--top-k", top_k, "Keep the k likeliest tokens; 0: all");
  command.add_option("--top-p", top_p, "Keep the likeliest tokens that hold this much probability");
  command.add_option("--min-p", min_p, "Drop tokens below this share of the likeliest one's probability");
  command.add_option("--repetition-penalty", repetition_penalty, "Divides the logits of tokens seen so far; 1: off");
  command.add_option("--seed", seed, "The reply's key; without one it is derived from the request itself");
}

Status SamplingOptions::apply(const LoadedModel& loaded, Request& request) const {
  SamplingParams& s = request.sampling;
  s = loaded.card.defaults;
  if (!loaded.has_generation_config) s.temperature = 0;
  if (temperature) s.temperature = *temperature;
  if (top_k) s.top_k = *top_k;
  if (top_p) s.top_p = *top_p;
  if (min_p) s.min_p = *min_p;
  if (repetition_penalty) s.repetition_penalty = *repetition_penalty;
  if (!(s.temperature >= 0 && s.temperature <= 100))
    return Status::error("--temperature {}: use 0 to 100", s.temperature);
  if (!(s.top_p > 0 && s.top_p <= 1)) return Status::error("--top-p {}: use more than 0, at most 1", s.top_p);
  if (!(s.min_p >= 0 && s.min_p <= 1)) return Status::error("--min-p {}: use 0 to 1", s.min_p);
  if (!(s.repetition_penalty > 0 && s.repetition_penalty <= 1000))
    return Status::error("--repetition-penalty {}: use more than 0", s.repetition_penalty);
  if (max_tokens < 1) return Status::error("--max-tokens {}: use at least 1", max_tokens);
  request.max_tokens = max_tokens;
  s.seed = seed ? *seed : default_seed(request);
  return Status::ok();
}

Result<std::vector<TokenId>> render_prompt(const LoadedModel& loaded, const TemplateInput& input, bool* clock_read) {
  if (!loaded.tokenizer) return Status::error("the model has no tokenizer files; give the prompt as --ids FILE.json");
  if (!loaded.chat_template) return Status::error("the model has no chat template; give a plain prompt with --raw");
  auto text = loaded.chat_template->render(input, clock_read);
  if (!text) return text.status();
  return loaded.tokenizer->encode(*text);
}

}  // namespace steadfast
