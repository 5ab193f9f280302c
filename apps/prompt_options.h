// The options that name a prompt and sampling values, shared by generate and chat.
#pragma once

#include "model_options.h"

namespace steadfast {

struct SamplingOptions {
  // Unset ones come from generation_config.json; without that file the commands draw greedily.
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k;
  std::optional<std::uint64_t> seed;
  int max_tokens = 512;

  void add_to(CLI::App& command);
  // Fills request.sampling and max_tokens; the seed too, after the prompt is set.
  Status apply(const LoadedModel& loaded, Request& request) const;
};

// Messages to ids by the model's chat template; *clock_read, where given, tells whether it asked for the time.
Result<std::vector<TokenId>> render_prompt(const LoadedModel& loaded, const TemplateInput& input,
                                           bool* clock_read = nullptr);

}  // namespace steadfast
