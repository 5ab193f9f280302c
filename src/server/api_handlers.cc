// The endpoints: body to checked value, checks against the model, then the job or the answer.
#include "server/api_state.h"
#include "server/completion_schema.h"
#include "server/json_parse.h"
#include "server/receipt.h"

namespace steadfast {

namespace {

ApiError no_tokenizer() {
  return {400, "this model came without a tokenizer: send token ids to /v1/completions", "", "no_tokenizer"};
}

ReplyHead make_head(const ApiState& state, const char* prefix) {
  ReplyHead head;
  head.id = prefix + random_hex(12);
  head.created = clock_seconds();
  head.model = state.model_name;
  return head;
}

std::optional<ApiError> check_tools(const ApiState& state, const TemplateInput& input) {
  if (input.tools.is_null()) return std::nullopt;
  if (!state.traits.takes_tools) return bad_field("tools", "this model's chat template does not take tools");
  if (state.traits.tools == ToolFormat::kNone) {
    return bad_field("tools", "this model's chat template writes tool calls in a form that this server cannot read");
  }
  return std::nullopt;
}

std::optional<ApiError> apply_effort(const ApiState& state, const std::string& effort, TemplateInput& input) {
  if (effort.empty()) return std::nullopt;
  const auto& efforts = state.traits.efforts;
  if (efforts.empty()) return bad_field("reasoning_effort", "this model's chat template has no reasoning effort");
  // OpenAI's scale ends at "high" where some templates' ends at "xhigh".
  const std::string value = effort == "high" && !efforts.contains("high") ? "xhigh" : effort;
  if (!efforts.contains(value)) {
    std::string list;
    for (const auto& one : efforts) list += (list.empty() ? "" : ", ") + one;
    return bad_field("reasoning_effort", "'reasoning_effort' is '{}'; this model takes {}", shown_word(effort), list);
  }
  input.kwargs["reasoning_effort"] = value;
  return std::nullopt;
}

OutputOptions output_options(const ApiState& state, const ChatRequest& chat, const std::string& prompt) {
  OutputOptions options;
  options.thinking = state.thinking;
  const auto end = prompt.find_last_not_of(" \t\r\n");
  options.starts_in_reasoning = state.thinking && chat.input.add_generation_prompt && end != std::string::npos &&
                                std::string_view(prompt).substr(0, end + 1).ends_with("<think>");
  if (!chat.input.tools.is_null()) {
    options.tools = state.traits.tools;
    options.schemas = chat.input.tools;
  }
  return options;
}

void add_choices(const ApiState& state, const Generation& generation, const std::vector<TokenId>& prompt, Job& job,
                 ReplyHead& head, std::optional<std::int64_t> now = std::nullopt) {
  for (int i = 0; i < generation.choices; ++i) {
    Request one = make_request(generation, prompt, i);
    head.receipts.push_back(make_receipt(one, state.service.card(), now));
    job.requests.push_back(std::move(one));
  }
  head.prompt_tokens += static_cast<int>(prompt.size());
}

Outcome<Job> chat_job(ApiState& state, const std::string& body) {
  auto parsed = parse_json(body);
  if (!parsed) return parsed.error();
  auto chat = read_chat_request(*parsed, state.service.card(), state.limits);
  if (!chat) return chat.error();
  if (auto error = check_model(state, chat->model)) return *error;
  if (auto error = check_tools(state, chat->input)) return *error;
  if (auto error = apply_effort(state, chat->reasoning_effort, chat->input)) return *error;
  if (!chat->input.now) chat->input.now = clock_seconds();
  auto prompt = encode_chat(state, chat->input);
  if (!prompt) return prompt.error();
  if (auto error = check_prompt(state, prompt->ids, chat->generation.max_tokens)) return *error;
  Job job;
  job.stream = chat->generation.stream;
  job.include_usage = chat->generation.include_usage;
  ReplyHead head = make_head(state, "chatcmpl-");
  add_choices(state, chat->generation, prompt->ids, job, head, prompt->clock_read ? chat->input.now : std::nullopt);
  ChatForm form{chat->generation.top_logprobs >= 0, output_options(state, *chat, prompt->text)};
  job.builder =
      make_chat_builder(std::move(head), chat->generation.choices, state.service.tokenizer(), std::move(form));
  return job;
}

Outcome<std::vector<TokenId>> ids_of(const ApiState& state, const Prompt& prompt) {
  const Tokenizer* tokenizer = state.service.tokenizer();
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) {
    for (const TokenId id : *ids) {
      if (tokenizer != nullptr && !tokenizer->contains(id)) {
        return bad_field("prompt", "'prompt' has the id {}, which this model's vocabulary does not have", id);
      }
    }
    return *ids;
  }
  if (tokenizer == nullptr) return no_tokenizer();
  return tokenizer->encode(std::get<std::string>(prompt));
}

std::string echo_of(const ApiState& state, const Prompt& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  const Tokenizer* tokenizer = state.service.tokenizer();
  return tokenizer == nullptr ? "" : tokenizer->decode(std::get<std::vector<TokenId>>(prompt));
}

Outcome<Job> completion_job(ApiState& state, const std::string& body) {
  auto parsed = parse_json(body);
  if (!parsed) return parsed.error();
  auto completion = read_completion_request(*parsed, state.service.card(), state.limits);
  if (!completion) return completion.error();
  if (auto error = check_model(state, completion->model)) return *error;
  Job job;
  const Generation& generation = completion->generation;
  job.stream = generation.stream;
  job.include_usage = generation.include_usage;
  ReplyHead head = make_head(state, "cmpl-");
  CompletionForm form;
  form.top_logprobs = generation.top_logprobs;
  form.choices_per_prompt = generation.choices;
  if (completion->prompts.size() * static_cast<std::size_t>(generation.choices) >
      static_cast<std::size_t>(state.streams->most())) {
    return bad_field("prompt", "the request asks for {} replies at once; this server takes {}",
                     completion->prompts.size() * static_cast<std::size_t>(generation.choices), state.streams->most());
  }
  for (const Prompt& prompt : completion->prompts) {
    auto ids = ids_of(state, prompt);
    if (!ids) return ids.error();
    if (auto error = check_prompt(state, *ids, generation.max_tokens)) return *error;
    add_choices(state, generation, *ids, job, head);
    if (completion->echo) form.echo.push_back(echo_of(state, prompt));
  }
  const int choices = static_cast<int>(job.requests.size());
  job.builder = make_completion_builder(std::move(head), choices, state.service.tokenizer(), std::move(form));
  return job;
}

Outcome<Json> tokenize(ApiState& state, const std::string& body) {
  auto parsed = parse_json(body);
  if (!parsed) return parsed.error();
  auto wanted = read_tokenize_request(*parsed, state.limits);
  if (!wanted) return wanted.error();
  if (auto error = check_model(state, wanted->model)) return *error;
  const Tokenizer* tokenizer = state.service.tokenizer();
  if (tokenizer == nullptr) return no_tokenizer();
  std::vector<TokenId> ids;
  if (wanted->prompt) {
    ids = tokenizer->encode(*wanted->prompt);
  } else {
    if (auto error = check_tools(state, wanted->input)) return *error;
    if (!wanted->input.now) wanted->input.now = clock_seconds();
    auto prompt = encode_chat(state, wanted->input);
    if (!prompt) return prompt.error();
    ids = std::move(prompt->ids);
  }
  Json out = {{"count", ids.size()}, {"max_model_len", state.service.card().window}, {"tokens", ids}};
  if (wanted->with_texts) {
    Json texts = Json::array();
    for (const TokenId id : ids) texts.push_back(tokenizer->token_text(id));
    out["token_strs"] = std::move(texts);
  }
  return out;
}

Outcome<Json> detokenize(ApiState& state, const std::string& body) {
  auto parsed = parse_json(body);
  if (!parsed) return parsed.error();
  auto wanted = read_detokenize_request(*parsed, state.service.card());
  if (!wanted) return wanted.error();
  if (auto error = check_model(state, wanted->model)) return *error;
  const Tokenizer* tokenizer = state.service.tokenizer();
  if (tokenizer == nullptr) return no_tokenizer();
  return Json{{"prompt", tokenizer->decode(wanted->ids, false)}};
}

}  // namespace

std::optional<ApiError> check_model(const ApiState& state, const std::string& name) {
  if (name.empty() || name == state.model_name || name == state.service.card().name) return std::nullopt;
  return ApiError{404, fmt::format("the model '{}' is not served here; '{}' is", shown_word(name), state.model_name),
                  "model", "model_not_found"};
}

Outcome<EncodedPrompt> encode_chat(const ApiState& state, TemplateInput input) {
  if (state.service.tokenizer() == nullptr) return no_tokenizer();
  if (!state.encoder) {
    return ApiError{400, "this model has no chat template: use /v1/completions", "messages", "no_chat_template"};
  }
  fit_contents(state.traits, input.messages);
  return state.encoder->encode(input);
}

std::optional<ApiError> check_prompt(const ApiState& state, std::span<const TokenId> prompt, int max_tokens) {
  const auto window = static_cast<std::size_t>(state.service.card().window);
  if (prompt.empty()) return bad_field("prompt", "the prompt is empty");
  if (prompt.size() >= window) {
    return ApiError{400,
                    fmt::format("the prompt has {} tokens; this server's window holds {}, the reply included",
                                prompt.size(), window),
                    "messages", "context_length_exceeded"};
  }
  if (prompt.size() + static_cast<std::size_t>(max_tokens) > window) {
    return ApiError{400,
                    fmt::format("the prompt has {} tokens and the reply may have {}; this server's window holds {}",
                                prompt.size(), max_tokens, window),
                    "max_tokens", "context_length_exceeded"};
  }
  return std::nullopt;
}

void handle_chat(ApiState& state, const httplib::Request& request, httplib::Response& response, Body body) {
  auto job = chat_job(state, body);
  if (!job) return reply_error(request, response, job.error());
  run_job(state, request, response, std::move(*job));
}

void handle_completion(ApiState& state, const httplib::Request& request, httplib::Response& response, Body body) {
  auto job = completion_job(state, body);
  if (!job) return reply_error(request, response, job.error());
  run_job(state, request, response, std::move(*job));
}

void handle_tokenize(ApiState& state, const httplib::Request& request, httplib::Response& response, Body body) {
  auto answer = tokenize(state, body);
  if (!answer) return reply_error(request, response, answer.error());
  reply_json(response, 200, *answer);
}

void handle_detokenize(ApiState& state, const httplib::Request& request, httplib::Response& response, Body body) {
  auto answer = detokenize(state, body);
  if (!answer) return reply_error(request, response, answer.error());
  reply_json(response, 200, *answer);
}

Json model_json(const ApiState& state) {
  const ModelCard& card = state.service.card();
  return {{"id", state.model_name},  {"object", "model"},
          {"created", card.created}, {"owned_by", "steadfast"},
          {"family", card.family},   {"max_model_len", card.window},
          {"digest", card.digest},   {"arithmetic", to_json(card.arithmetic)}};
}

Json models_json(const ApiState& state) { return {{"object", "list"}, {"data", Json::array({model_json(state)})}}; }

}  // namespace steadfast
