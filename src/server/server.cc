// Routes, access, log lines and shutdown.
#include "server/server.h"

#include <spdlog/spdlog.h>

#include <fstream>

#include "server/api_state.h"

namespace steadfast {

namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

TransportOptions transport_options(const ServerOptions& options) {
  TransportOptions out;
  out.host = options.host;
  out.port = options.port;
  out.connections = options.connections;
  out.limits.body_bytes = options.body_bytes;
  out.limits.head = milliseconds(options.head_seconds);
  out.limits.idle = milliseconds(options.idle_seconds);
  out.limits.patience = milliseconds(options.patience_seconds);
  return out;
}

bool is_open(const std::string& path) { return path == "/health" || path == "/v1/health"; }

std::optional<ApiError> check_key(const ApiState& state, const Connection& connection) {
  if (state.key_digests.empty()) return std::nullopt;
  const std::string* header = connection.header("authorization");
  std::string_view given = header == nullptr ? std::string_view() : std::string_view(*header);
  if (given.starts_with("Bearer ") || given.starts_with("bearer ")) {
    given.remove_prefix(7);
  } else {
    given = {};
  }
  const Sha256 digest = sha256(given);
  bool known = false;
  for (const Sha256& key : state.key_digests) known = equal_in_constant_time(digest, key) || known;
  if (known) return std::nullopt;
  return ApiError{401, "this server needs an API key: send it as 'Authorization: Bearer KEY'", "", "invalid_api_key"};
}

// Browsers name the page that a request comes from. Without this any page could use a server on its visitor's machine.
std::optional<ApiError> check_origin(const ApiState& state, const httplib::Request& request,
                                     const Connection& connection) {
  const std::string* origin = connection.header("origin");
  if (origin == nullptr || request.method != "POST") return std::nullopt;
  if (state.options.cors_origin == "*" || *origin == state.options.cors_origin) return std::nullopt;
  return ApiError{403, "web pages may not use this server; its option --cors-origin names one that may", "", ""};
}

void add_cors(const ApiState& state, const httplib::Request& request, httplib::Response& response) {
  if (state.options.cors_origin.empty()) return;
  response.set_header("Vary", "Origin");
  const std::string origin = request.get_header_value("Origin");
  if (state.options.cors_origin != "*" && origin != state.options.cors_origin) return;
  response.set_header("Access-Control-Allow-Origin", state.options.cors_origin);
}

void answer_preflight(const ApiState& state, httplib::Response& response) {
  response.status = 204;
  if (state.options.cors_origin.empty()) return;
  response.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  response.set_header("Access-Control-Allow-Headers", "authorization, content-type");
  response.set_header("Access-Control-Max-Age", "600");
}

constexpr const char* kRoutes[] = {
    "/v1/chat/completions", "/v1/completions", "/v1/models", "/tokenize", "/detokenize", "/health",
    "/v1/health",           "/version",        "/metrics"};

std::string route_of(const std::string& path) {
  for (const char* route : kRoutes) {
    if (path == route) return route;
  }
  return path.starts_with("/v1/models/") ? "/v1/models/{id}" : "other";
}

void log_request(ApiState& state, const Connection& connection, double seconds) {
  const RequestRecord& record = connection.record;
  state.metrics.request(route_of(record.path), record.status, seconds);
  std::string ip;
  int port = 0;
  connection.get_remote_ip_and_port(ip, port);
  std::string line = fmt::format("{} {} {} {} {:.3f} s", ip, shown_word(record.method), shown_word(record.path),
                                 record.status, seconds);
  if (!record.id.empty()) {
    line += fmt::format(", {}: {} prompt and {} reply tokens", record.id, record.prompt_tokens, record.reply_tokens);
  }
  if (!record.note.empty()) line += fmt::format(" ({})", shown_word(record.note));
  spdlog::info("{}", line);
}

}  // namespace

ApiState::ApiState(Service& the_service, ServerOptions the_options)
    : service(the_service),
      options(std::move(the_options)),
      model_name(options.alias.empty() ? service.card().name : options.alias),
      streams(std::make_shared<StreamCount>(options.streams)) {
  const Tokenizer* tokenizer = service.tokenizer();
  const ChatTemplate* chat_template = service.chat_template();
  if (chat_template != nullptr) traits = probe_template(*chat_template);
  if (tokenizer != nullptr && chat_template != nullptr) encoder.emplace(*tokenizer, *chat_template);
  if (tokenizer != nullptr) {
    const TokenId open = tokenizer->added_token("<think>"), close = tokenizer->added_token("</think>");
    thinking = open >= 0 && close >= 0;
    if (thinking && tokenizer->is_special(close)) {
      spdlog::warn("this model's </think> is a special token: reasoning will not be told apart from content");
    }
  }
  for (const std::string& key : options.api_keys) key_digests.push_back(sha256(key));
}

Result<std::vector<std::string>> read_api_keys(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in)
    return Status::error("cannot read the API keys in {}; give a readable file with one key a line", file.string());
  std::vector<std::string> keys;
  std::string line;
  while (std::getline(in, line)) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || line.front() == '#') continue;
    for (const char c : line) {
      if (c <= 0x20 || c >= 0x7F) {
        return Status::error("{}: a key has a character that HTTP headers cannot carry; use letters, digits and marks",
                             file.string());
      }
    }
    keys.push_back(line);
  }
  if (keys.empty()) return Status::error("{}: holds no API key; write one a line", file.string());
  return keys;
}

struct ApiServer::Impl {
  Impl(Service& service, ServerOptions options)
      : state(service, std::move(options)), transport(transport_options(state.options)) {
    install_posts();
    install_gets();
    transport.set_gate(
        [this](const httplib::Request& request, const Connection& connection) -> std::optional<ApiError> {
          if (is_open(request.path)) return std::nullopt;
          if (auto error = check_origin(state, request, connection)) return error;
          return check_key(state, connection);
        });
    transport.set_preflight([this](const auto&, auto& response) { answer_preflight(state, response); });
    transport.set_decorator([this](const auto& request, auto& response) { add_cors(state, request, response); });
    transport.set_finished(
        [this](const Connection& connection, double seconds) { log_request(state, connection, seconds); });
  }

  void install_posts() {
    const auto post = [this](const char* path, auto handler) {
      transport.post(path, [this, handler](const auto& request, auto& response, const std::string& body) {
        handler(state, request, response, body);
      });
    };
    post("/v1/chat/completions", handle_chat);
    post("/v1/completions", handle_completion);
    post("/tokenize", handle_tokenize);
    post("/detokenize", handle_detokenize);
  }

  void install_gets() {
    const auto get = [this](const char* path, auto answer) {
      transport.get(path, [answer](const auto&, auto& response) { reply_json(response, 200, answer()); });
    };
    for (const char* path : {"/health", "/v1/health"}) get(path, [] { return Json{{"status", "ok"}}; });
    get("/version", [] { return Json{{"version", STEADFAST_VERSION}}; });
    get("/v1/models", [this] { return models_json(state); });
    transport.get("/v1/models/*", [this](const httplib::Request& request, httplib::Response& response) {
      const std::string name = request.path.substr(std::string_view("/v1/models/").size());
      if (const auto error = check_model(state, name)) return reply_error(request, response, *error);
      reply_json(response, 200, model_json(state));
    });
    transport.get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(state.metrics.text(state.service.counters(), transport.connections()),
                           "text/plain; version=0.0.4; charset=utf-8");
    });
  }

  void end(std::chrono::milliseconds grace) {
    constexpr std::chrono::milliseconds kToCancel{2000};
    if (!transport.drain(grace)) {
      state.stopping = true;
      transport.drain(kToCancel);
    }
    transport.stop();
  }

  ApiState state;
  Transport transport;
};

ApiServer::ApiServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ApiServer::~ApiServer() { impl_->end(std::chrono::milliseconds(0)); }

Result<std::unique_ptr<ApiServer>> ApiServer::start(Service& service, ServerOptions options) {
  auto impl = std::make_unique<Impl>(service, std::move(options));
  if (auto status = impl->transport.start(); !status) return status;
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(impl)));
}

int ApiServer::port() const { return impl_->transport.port(); }

std::string ApiServer::url() const {
  const std::string& host = impl_->state.options.host;
  const bool bracketed = host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", bracketed ? "[" : "", host, bracketed ? "]" : "", port());
}

void ApiServer::shutdown() { impl_->end(milliseconds(impl_->state.options.shutdown_seconds)); }

}  // namespace steadfast
