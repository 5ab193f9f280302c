// What the endpoints' handlers share, and the handlers. Internal to src/server.
#pragma once

#include <atomic>
#include <optional>

#include "server/chat_schema.h"
#include "server/digest.h"
#include "server/metrics.h"
#include "server/prompt_encoder.h"
#include "server/reply_builder.h"
#include "server/server.h"
#include "server/template_traits.h"
#include "server/transport.h"

namespace steadfast {

struct ApiState {
  ApiState(Service& the_service, ServerOptions the_options);

  Service& service;
  const ServerOptions options;
  const RequestLimits limits;
  const std::string model_name;
  std::optional<PromptEncoder> encoder;  // with a tokenizer and a template only
  TemplateTraits traits;
  bool thinking = false;  // the model has the tokens <think> and </think>
  std::vector<Sha256> key_digests;
  std::shared_ptr<StreamCount> streams;
  Metrics metrics;
  std::atomic<bool> stopping{false};  // running replies are to end now
};

using Body = const std::string&;
void handle_chat(ApiState& state, const httplib::Request& request, httplib::Response& response, Body body);
void handle_completion(ApiState& state, const httplib::Request& request, httplib::Response& response, Body body);
void handle_tokenize(ApiState& state, const httplib::Request& request, httplib::Response& response, Body body);
void handle_detokenize(ApiState& state, const httplib::Request& request, httplib::Response& response, Body body);

Json models_json(const ApiState& state);
Json model_json(const ApiState& state);

// 404 where the request names a model other than the one that is served.
std::optional<ApiError> check_model(const ApiState& state, const std::string& name);
// Renders and encodes; fits contents to the template first.
Outcome<EncodedPrompt> encode_chat(const ApiState& state, TemplateInput input);
// Whether the prompt and the reply that is asked for fit into a stream's window.
std::optional<ApiError> check_prompt(const ApiState& state, std::span<const TokenId> prompt, int max_tokens);

// A request ready to run: what to submit and how to tell of it.
struct Job {
  std::vector<Request> requests;
  std::unique_ptr<ReplyBuilder> builder;
  bool stream = false, include_usage = false;
};
void run_job(ApiState& state, const httplib::Request& request, httplib::Response& response, Job job);

}  // namespace steadfast
