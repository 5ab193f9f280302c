// The OpenAI-compatible server over a Service: docs/api.md says what it answers. Knows no tensor.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/service.h"

namespace steadfast {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                    // 0: any free one
  std::string alias;                  // the model's name for clients; empty: the card's
  std::vector<std::string> api_keys;  // empty: none is asked for
  std::string cors_origin;            // the one web origin that may call, or "*"; empty: none
  int streams = 64;                   // running and waiting; more are told 503
  double reply_seconds = 3600;        // a reply's longest time; 0: none
  double shutdown_seconds = 30;       // what running replies get to finish in
  std::size_t body_bytes = 8 * 1024 * 1024;
  std::size_t connections = 512;
  std::size_t unread_bytes = 4 * 1024 * 1024;  // of one request's replies, not read by the client yet
  double head_seconds = 10, idle_seconds = 30, patience_seconds = 30;  // see connection.h
};

// One key a line; empty lines and lines that begin with # do not count.
Result<std::vector<std::string>> read_api_keys(const std::filesystem::path& file);

class ApiServer {
 public:
  // Listens and serves until shutdown(). `service` must outlive the server.
  static Result<std::unique_ptr<ApiServer>> start(Service& service, ServerOptions options);
  ~ApiServer();  // shuts down without waiting for running replies

  int port() const;
  std::string url() const;  // "http://127.0.0.1:8080"
  // Lets running replies finish for options.shutdown_seconds, then cancels them. Requests that come meanwhile are
  // refused. Returns when every connection has ended.
  void shutdown();

 private:
  struct Impl;
  explicit ApiServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace steadfast
