// What the HTTP tests share: a server over the fake service on a free port, requests, event streams, waiting.
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>

#include "fake_service.h"
#include "server/server.h"

namespace steadfast::testing {

struct Reply {
  int status = 0;
  httplib::Headers headers;
  std::string body;
  Json json() const { return Json::parse(body); }
};

class HttpTest : public ::testing::Test {
 protected:
  // Call first; the defaults are a server on 127.0.0.1 that gives up on nothing.
  void start(FakeOptions fake = {}, ServerOptions options = {});
  FakeService& service() { return *service_; }
  ApiServer& server() { return *server_; }
  std::unique_ptr<httplib::Client> client() const;

  Reply get(const std::string& path, const httplib::Headers& headers = {}) const;
  Reply post(const std::string& path, const Json& body, const httplib::Headers& headers = {}) const;
  Reply post_text(const std::string& path, const std::string& body, const httplib::Headers& headers = {}) const;
  // {"messages": [{"role": "user", "content": text}]} and what `more` adds.
  static Json chat(const std::string& text, const Json& more = Json::object());
  // The JSON of each event but the last, which must be [DONE].
  static std::vector<Json> events(const std::string& body);

  std::unique_ptr<FakeService> service_;
  std::unique_ptr<ApiServer> server_;
};

// Waits until `condition` holds, and says whether it came to hold within a minute. No test's outcome depends on how
// long it took.
template <typename Condition>
bool eventually(const Condition& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// A plain TCP connection to the server, for what an HTTP client would not send.
class RawClient {
 public:
  // receive_bytes: size of the socket's receive buffer; 0: the system's. A small one makes an unread reply stop soon.
  explicit RawClient(int port, int receive_bytes = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  bool send(const std::string& bytes);
  std::string read_all();   // until the server closes
  std::string read_some();  // what comes next; empty: closed
  void close();

 private:
  int fd_ = -1;
};

// "POST /path HTTP/1.1" with the JSON headers and the body.
std::string raw_post(const std::string& path, const std::string& body);

}  // namespace steadfast::testing
