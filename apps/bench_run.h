// What the kinds of `bench` share: prompts, requests run at once on an engine, medians.
#pragma once

#include <functional>
#include <span>

#include "model_options.h"

namespace steadfast {

struct BenchReply {
  std::vector<TokenId> ids;
  ReplyEnd end;
  double first_token_seconds() const { return end.timings.queue_seconds + end.timings.prompt_seconds; }
};

struct BenchRun {
  std::vector<BenchReply> replies;  // one a request
  double seconds = 0;               // from the first submission to the last end
};

// Submits all requests at once and waits for their ends. progress is called some times a second, from this thread, with
// the tokens made so far. An error of a request or of a reply is the Result's.
Result<BenchRun> run_together(Engine& engine, std::span<const Request> requests,
                              const std::function<void(int tokens)>& progress);

// Ids that are arbitrary but fixed, and differ from the first on in every `run`, so that none is another's prefix.
std::vector<TokenId> arbitrary_ids(int count, int vocab_size, int run);

// `count` prompts of varied lengths, each at most `longest` ids: questions and documents through the model's template,
// or arbitrary ids where the model has no tokenizer.
Result<std::vector<std::vector<TokenId>>> varied_prompts(const LoadedModel& loaded, int count, int longest);
// A prompt of each length, exactly; as varied_prompts() but with as much of a document as it needs.
Result<std::vector<std::vector<TokenId>>> prompts_of_lengths(const LoadedModel& loaded, std::span<const int> lengths);
// A JSON array: each entry a user's message (a string), a list of messages, or a list of token ids.
Result<std::vector<std::vector<TokenId>>> read_prompts(const std::string& path, const LoadedModel& loaded);

double median(std::vector<double> values);  // the upper one of an even number

}  // namespace steadfast
