// Prompts in their four forms, and the two tokenizer endpoints as vLLM has them.
#include "server/completion_schema.h"

#include "server/chat_schema.h"

namespace steadfast {

namespace {

std::optional<ApiError> read_ids(const Json& list, const std::string& name, const ModelCard& card,
                                 std::vector<TokenId>& out) {
  const std::string field = name.substr(0, name.find('['));
  out.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto id = whole_number(list[i]);
    if (!list[i].is_number()) {
      return bad_field(field, "'{}[{}]' must be a token id, not {}", name, i, kind_of(list[i]));
    }
    if (!id || *id < 0 || *id >= card.vocab_size) {
      return bad_field(field, "'{}[{}]' is no token id of this model (0 to {})", name, i, card.vocab_size - 1);
    }
    out.push_back(static_cast<TokenId>(*id));
  }
  return std::nullopt;
}

std::optional<ApiError> read_prompts(const Json* prompt, const ModelCard& card, const RequestLimits& limits,
                                     std::vector<Prompt>& out) {
  if (prompt == nullptr) return bad_field("prompt", "'prompt' is missing");
  if (prompt->is_string()) {
    out.emplace_back(prompt->get<std::string>());
    return std::nullopt;
  }
  if (!prompt->is_array()) {
    return bad_field("prompt",
                     "'prompt' must be a string, a list of strings, a list of token ids or a list of such lists");
  }
  if (prompt->empty()) return bad_field("prompt", "'prompt' is empty");
  if (prompt->front().is_number()) {
    std::vector<TokenId> ids;
    if (auto error = read_ids(*prompt, "prompt", card, ids)) return error;
    out.emplace_back(std::move(ids));
    return std::nullopt;
  }
  if (prompt->size() > limits.prompts)
    return bad_field("prompt", "'prompt' may hold at most {} prompts", limits.prompts);
  const bool texts = prompt->front().is_string();
  for (std::size_t i = 0; i < prompt->size(); ++i) {
    const Json& item = (*prompt)[i];
    const std::string name = fmt::format("prompt[{}]", i);
    if (texts ? !item.is_string() : !item.is_array()) {
      return bad_field("prompt", "'{}' must be {}, as the others are, not {}", name,
                       texts ? "a string" : "a list of token ids", kind_of(item));
    }
    if (texts) {
      out.emplace_back(item.get<std::string>());
      continue;
    }
    std::vector<TokenId> ids;
    if (auto error = read_ids(item, name, card, ids)) return error;
    out.emplace_back(std::move(ids));
  }
  return std::nullopt;
}

ApiError not_an_object() { return {400, "the body must be a JSON object", "", "invalid_json"}; }

}  // namespace

Outcome<CompletionRequest> read_completion_request(const Json& body, const ModelCard& card,
                                                   const RequestLimits& limits) {
  constexpr int kDefaultTokens = 16;  // OpenAI's, for this endpoint
  if (!body.is_object()) return not_an_object();
  FieldReader fields(body);
  CompletionRequest request;
  request.model = fields.string("model").value_or("");
  if (auto error = read_prompts(fields.find("prompt"), card, limits, request.prompts)) fields.fail(*error);
  request.generation = read_generation(fields, card, limits);
  if (request.generation.max_tokens == 0) request.generation.max_tokens = kDefaultTokens;
  request.echo = fields.boolean("echo").value_or(false);
  if (const auto logprobs = fields.integer("logprobs", 0, 5)) {
    request.generation.top_logprobs = static_cast<int>(*logprobs);
  }
  if (request.echo && request.generation.top_logprobs >= 0) {
    fields.fail("echo", "'echo' with 'logprobs' is not supported: log-probabilities are of the reply's tokens only");
  }
  const auto best_of = fields.integer("best_of", 1, limits.choices);
  if (best_of && *best_of != request.generation.choices) {
    fields.fail("best_of", "'best_of' must equal 'n': choices are not ranked on this server");
  }
  fields.refuse("suffix", "text cannot be inserted on this server", "");
  refuse_unsupported(fields);
  if (fields.error()) return *fields.error();
  return request;
}

Outcome<TokenizeRequest> read_tokenize_request(const Json& body, const RequestLimits& limits) {
  if (!body.is_object()) return not_an_object();
  FieldReader fields(body);
  TokenizeRequest request;
  request.model = fields.string("model").value_or("");
  request.prompt = fields.string("prompt");
  request.with_texts = fields.boolean("return_token_strs").value_or(false);
  fields.boolean("add_special_tokens");
  if (request.prompt && fields.find("messages") != nullptr) {
    fields.fail("prompt", "give 'prompt' or 'messages', not both");
  } else if (!request.prompt) {
    read_template_input(fields, limits, request.input);
  }
  if (fields.error()) return *fields.error();
  return request;
}

Outcome<DetokenizeRequest> read_detokenize_request(const Json& body, const ModelCard& card) {
  if (!body.is_object()) return not_an_object();
  FieldReader fields(body);
  DetokenizeRequest request;
  request.model = fields.string("model").value_or("");
  const Json* ids = fields.array("tokens");
  if (fields.ok() && ids == nullptr) fields.fail("tokens", "'tokens' is missing");
  if (fields.error()) return *fields.error();
  if (auto error = read_ids(*ids, "tokens", card, request.ids)) return *error;
  return request;
}

}  // namespace steadfast
