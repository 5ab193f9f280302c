// Routing and the checks that come before a request's body is read.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>

#include "server/transport.h"

namespace steadfast {

namespace {

std::string escaped_for_regex(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '/') out += '\\';
    out += c;
  }
  return out;
}

bool is_json_type(const std::string* type) {
  if (type == nullptr) return false;
  std::string name = type->substr(0, type->find(';'));
  name.erase(name.find_last_not_of(' ') + 1);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == "application/json" || (name.starts_with("application/") && name.ends_with("+json"));
}

std::optional<ApiError> body_error(const Connection& connection, std::size_t most) {
  if (!is_json_type(connection.header("content-type"))) {
    return ApiError{415, "send the body as JSON, with the header 'Content-Type: application/json'", "", ""};
  }
  if (connection.header("content-encoding") != nullptr) {
    return ApiError{415, "compressed bodies are not accepted; send the body without Content-Encoding", "", ""};
  }
  if (!connection.chunked() && connection.header("content-length") == nullptr) {
    return ApiError{411, "the header Content-Length is missing", "", ""};
  }
  if (connection.body_left() > most) {
    return ApiError{413, fmt::format("the body is larger than the {} bytes that this server accepts", most), "", ""};
  }
  return std::nullopt;
}

}  // namespace

Connection& connection_of(const httplib::Request& request) {
  const auto* owner = request.progress.target<ConnectionOwner>();
  CHECK(owner != nullptr, "a request without its connection: {}", request.path);
  return *owner->connection;
}

void reply_json(httplib::Response& response, int status, const Json& body) {
  response.status = status;
  response.set_content(json_text(body), "application/json");
}

void reply_error(const httplib::Request& request, httplib::Response& response, const ApiError& error) {
  reply_json(response, error.status, to_json(error));
  if (error.status == 401) response.set_header("WWW-Authenticate", "Bearer");
  if (error.status == 503) response.set_header("Retry-After", "1");
  connection_of(request).record.note = error.message;
}

void Transport::install_handlers() {
  set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) { return route(request, response); });
  set_expect_100_continue_handler([this](const httplib::Request& request, httplib::Response& response) {
    return refused(request, response) ? response.status : 100;
  });
  set_exception_handler([](const httplib::Request& request, httplib::Response& response, std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      spdlog::error("a request failed: {}", error.what());
    } catch (...) {
      spdlog::error("a request failed for an unknown reason");
    }
    reply_error(request, response, {500, "the server failed on this request; its log says more", "", ""});
  });
  set_error_handler(HandlerWithResponse([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return HandlerResponse::Unhandled;
    reply_json(response, response.status, to_json(ApiError{response.status, "the request is malformed", "", ""}));
    return HandlerResponse::Handled;
  }));
  set_logger([](const httplib::Request& request, const httplib::Response& response) {
    if (const auto* owner = request.progress.target<ConnectionOwner>()) {
      owner->connection->record.status = response.status;
    }
  });
  const auto idle = std::chrono::duration_cast<std::chrono::seconds>(options_.limits.idle);
  set_keep_alive_timeout(idle.count());
  set_keep_alive_max_count(options_.requests_per_connection);
}

void Transport::post(const std::string& path, BodyHandler handler) {
  posts_[path] = std::move(handler);
  Post(escaped_for_regex(path), [this, path](const httplib::Request& request, httplib::Response& response,
                                             const httplib::ContentReader& reader) {
    std::string body;
    bool too_large = false;
    const bool whole = reader([&](const char* data, std::size_t size) {
      too_large = body.size() + size > options_.limits.body_bytes;
      if (!too_large) body.append(data, size);
      return !too_large;
    });
    if (too_large) {
      return reply_error(
          request, response,
          {413,
           fmt::format("the body is larger than the {} bytes that this server accepts", options_.limits.body_bytes), "",
           ""});
    }
    if (!whole) return reply_error(request, response, {400, "the body is malformed or did not come whole", "", ""});
    posts_.at(path)(request, response, body);
  });
}

const Transport::Handler* Transport::find_get(const std::string& path) const {
  if (const auto exact = gets_.find(path); exact != gets_.end()) return &exact->second;
  for (const auto& [pattern, handler] : gets_) {
    if (!pattern.ends_with("/*")) continue;
    const std::string_view folder = std::string_view(pattern).substr(0, pattern.size() - 1);
    if (path.size() > folder.size() && path.starts_with(folder)) return &handler;
  }
  return nullptr;
}

// Whether the request is refused before its body is read; the response then says why.
bool Transport::refused(const httplib::Request& request, httplib::Response& response) {
  const Connection& connection = connection_of(request);
  std::optional<ApiError> error;
  const bool has_get = find_get(request.path) != nullptr, has_post = posts_.contains(request.path);
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  if (draining_) {
    error = ApiError{503, "the server is stopping", "", ""};
  } else if (!has_get && !has_post) {
    error = ApiError{404, fmt::format("there is nothing at {}", shown_word(request.path)), "", ""};
  } else if (!(is_get && has_get) && !(request.method == "POST" && has_post)) {
    response.set_header("Allow", has_get ? "GET, HEAD" : "POST");
    error = ApiError{405, fmt::format("{} takes {} requests", request.path, has_get ? "GET" : "POST"), "", ""};
  } else if (gate_) {
    error = gate_(request, connection);
  }
  if (!error && request.method == "POST") error = body_error(connection, options_.limits.body_bytes);
  if (error) reply_error(request, response, *error);
  return error.has_value();
}

httplib::Server::HandlerResponse Transport::route(const httplib::Request& request, httplib::Response& response) {
  if (request.method == "OPTIONS" && preflight_) {
    preflight_(request, response);
    return HandlerResponse::Handled;
  }
  if (refused(request, response)) return HandlerResponse::Handled;
  if (request.method == "POST") return HandlerResponse::Unhandled;
  (*find_get(request.path))(request, response);
  return HandlerResponse::Handled;
}

}  // namespace steadfast
