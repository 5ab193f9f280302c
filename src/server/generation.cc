// Ranges follow OpenAI's reference, and vLLM's for what OpenAI lacks (model-spec 9.1, 9.2).
#include "server/generation.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace steadfast {

namespace {

constexpr double kLargest = 1e6;
constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();

void set(std::optional<double> value, float& target) {
  if (value) target = static_cast<float>(*value);
}

void read_bias(FieldReader& fields, const ModelCard& card, const RequestLimits& limits, SamplingParams& sampling) {
  const Json* bias = fields.object("logit_bias");
  if (bias == nullptr) return;
  if (bias->size() > limits.bias_entries) {
    return fields.fail("logit_bias", "'logit_bias' may have at most {} entries", limits.bias_entries);
  }
  for (const auto& [key, value] : bias->items()) {
    TokenId id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= card.vocab_size) {
      return fields.fail("logit_bias", "'logit_bias' has the key '{}', which is no token id of this model (0 to {})",
                         shown_word(key), card.vocab_size - 1);
    }
    if (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100)) {
      return fields.fail("logit_bias", "'logit_bias' of token {} must be a number between -100 and 100", id);
    }
    sampling.logit_bias[id] = value.get<float>();
  }
}

// 64 bits, signed or not: a receipt's seed can be sent as it is.
void read_seed(FieldReader& fields, Generation& out) {
  const Json* seed = fields.find("seed");
  if (seed == nullptr) return;
  if (seed->is_number_unsigned()) {
    out.sampling.seed = seed->get<std::uint64_t>();
  } else if (const auto number = whole_number(*seed)) {
    out.sampling.seed = static_cast<std::uint64_t>(*number);
  } else {
    return fields.fail("seed", "'seed' must be an integer of 64 bits");
  }
  out.has_seed = true;
}

void read_sampling(FieldReader& fields, const ModelCard& card, const RequestLimits& limits, Generation& out) {
  SamplingParams& sampling = out.sampling;
  sampling = card.defaults;
  set(fields.number("temperature", 0, kLargest), sampling.temperature);
  set(fields.number("top_p", 0, 1), sampling.top_p);
  if (fields.ok() && sampling.top_p == 0)
    fields.fail("top_p", "'top_p' must be more than 0; for greedy use temperature 0");
  set(fields.number("min_p", 0, 1), sampling.min_p);
  if (const auto top_k = fields.integer("top_k", -1, kMostTokens)) {
    sampling.top_k = static_cast<int>(std::max<std::int64_t>(*top_k, 0));
  }
  set(fields.number("repetition_penalty", 1e-3, 1e3), sampling.repetition_penalty);
  set(fields.number("presence_penalty", -2, 2), sampling.presence_penalty);
  set(fields.number("frequency_penalty", -2, 2), sampling.frequency_penalty);
  read_bias(fields, card, limits, sampling);
  read_seed(fields, out);
}

void read_stops(FieldReader& fields, const ModelCard& card, const RequestLimits& limits, Generation& out) {
  if (const Json* stop = fields.find("stop")) {
    const Json list = stop->is_string() ? Json::array({*stop}) : *stop;
    if (!list.is_array()) return fields.fail("stop", "'stop' must be a string or a list of strings");
    if (list.size() > static_cast<std::size_t>(limits.stop_strings)) {
      return fields.fail("stop", "'stop' may have at most {} strings", limits.stop_strings);
    }
    for (const Json& text : list) {
      if (!text.is_string()) return fields.fail("stop", "'stop' must hold strings only, not {}", kind_of(text));
      auto& value = text.get_ref<const std::string&>();
      if (value.empty() || value.size() > limits.stop_bytes) {
        return fields.fail("stop", "each string of 'stop' must have 1 to {} bytes", limits.stop_bytes);
      }
      out.stop.push_back(value);
    }
  }
  const Json* ids = fields.array("stop_token_ids");
  if (ids == nullptr) return;
  if (ids->size() > limits.stop_ids) {
    return fields.fail("stop_token_ids", "'stop_token_ids' may have at most {} ids", limits.stop_ids);
  }
  for (const Json& id : *ids) {
    const auto number = whole_number(id);
    if (!number || *number < 0 || *number >= card.vocab_size) {
      return fields.fail("stop_token_ids", "'stop_token_ids' must hold token ids of this model (0 to {})",
                         card.vocab_size - 1);
    }
    out.stop_ids.push_back(static_cast<TokenId>(*number));
  }
}

void read_stream(FieldReader& fields, Generation& out) {
  out.stream = fields.boolean("stream").value_or(false);
  const Json* options = fields.object("stream_options");
  if (options == nullptr) return;
  if (!out.stream) return fields.fail("stream_options", "'stream_options' is allowed with 'stream': true only");
  FieldReader inner(*options, "stream_options.");
  out.include_usage = inner.boolean("include_usage").value_or(false);
  inner.refuse("continuous_usage_stats", "usage comes once, in the last chunk", false);
  if (inner.error()) fields.fail(*inner.error());
}

// When a request is computed: OpenAI's tier for work that may wait, or vLLM's number, where more is later.
void read_priority(FieldReader& fields, Generation& out) {
  const Json* tier = fields.find("service_tier");
  out.background = tier != nullptr && *tier == "flex";
  const auto priority = fields.integer("priority", -kMostTokens, kMostTokens);
  if (!priority) return;
  if (*priority < 0)
    return fields.fail("priority", "'priority' must be 0, or more for work that may wait; nothing goes before 0");
  out.background = out.background || *priority > 0;
}

}  // namespace

Generation read_generation(FieldReader& fields, const ModelCard& card, const RequestLimits& limits) {
  Generation out;
  read_sampling(fields, card, limits, out);
  read_stops(fields, card, limits, out);
  read_stream(fields, out);
  if (const auto most = fields.integer("max_tokens", 1, kMostTokens)) out.max_tokens = static_cast<int>(*most);
  if (const auto most = fields.integer("max_completion_tokens", 1, kMostTokens)) {
    out.max_tokens = static_cast<int>(*most);
  }
  out.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  read_priority(fields, out);
  out.choices = static_cast<int>(fields.integer("n", 1, limits.choices).value_or(1));
  return out;
}

void refuse_unsupported(FieldReader& fields) {
  constexpr auto kConstrained = "output constrained by a grammar or schema is not available; ask for it in the prompt";
  constexpr auto kSampler = "this sampler is not available; see docs/api.md for those that are";
  struct Refused {
    const char* key;
    const char* sentence;
    Json harmless;
  };
  const Refused refused[] = {
      {"use_beam_search", "there is no beam search", false},
      {"length_penalty", "there is no beam search", 1.0},
      {"early_stopping", "there is no beam search", false},
      {"min_tokens", "use 'ignore_eos' with 'max_tokens' for replies of a fixed length", 0},
      {"bad_words", "use 'logit_bias'", Json::array()},
      {"allowed_token_ids", "use 'logit_bias'", nullptr},
      {"logits_processors", "use 'logit_bias'", nullptr},
      {"guided_json", kConstrained, nullptr},
      {"guided_regex", kConstrained, nullptr},
      {"guided_choice", kConstrained, nullptr},
      {"guided_grammar", kConstrained, nullptr},
      {"structured_outputs", kConstrained, nullptr},
      {"grammar", kConstrained, nullptr},
      {"json_schema", kConstrained, nullptr},
      {"prompt_logprobs", "log-probabilities are of the reply's tokens only", nullptr},
      {"truncate_prompt_tokens", "shorten the prompt yourself", nullptr},
      {"include_stop_str_in_output", "a reply ends before its stop string", false},
      {"skip_special_tokens", "special tokens are never part of a reply's text", true},
      {"return_tokens_as_token_ids", "use /tokenize", false},
      {"return_token_ids", "use /tokenize", false},
      {"prompt_embeds", "send text or token ids", nullptr},
      {"thinking_token_budget", "use 'enable_thinking' or 'max_tokens'", nullptr},
      {"repeat_penalty", "its name here is 'repetition_penalty'", 1.0},
      {"typical_p", kSampler, 1.0},
      {"mirostat", kSampler, 0},
      {"dry_multiplier", kSampler, 0},
      {"xtc_probability", kSampler, 0},
  };
  for (const Refused& field : refused) fields.refuse(field.key, field.sentence, field.harmless);
  if (const Json* format = fields.object("response_format")) {
    FieldReader inner(*format, "response_format.");
    const auto type = inner.string("type");
    if (inner.error()) return fields.fail(*inner.error());
    if (!type) return fields.fail("response_format", "'response_format.type' is missing");
    if (*type != "text") {
      fields.fail("response_format", "'response_format' of type '{}' is not supported: {}", shown_word(*type),
                  kConstrained);
    }
  }
}

Request make_request(const Generation& generation, std::vector<TokenId> prompt, int choice) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling = generation.sampling;
  request.max_tokens = generation.max_tokens;
  request.stop = generation.stop;
  request.ignore_eos = generation.ignore_eos;
  request.top_logprobs = generation.top_logprobs;
  request.background = generation.background;
  request.stop_ids = generation.stop_ids;
  if (!generation.has_seed) request.sampling.seed = 0;
  const std::uint64_t seed = generation.has_seed ? generation.sampling.seed : default_seed(request);
  request.sampling.seed = choice_seed(seed, choice);
  return request;
}

}  // namespace steadfast
