// Sockets to handlers: listens, gives each connection a thread, has httplib parse requests and write replies, and keeps
// the server reachable when clients are slow. Knows paths and limits, no endpoint.
// A connection that waits for its client gives way to a new one when all places are taken; only when every place is
// busy with a request is a new connection told 503.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/status.h"
#include "server/api_error.h"
#include "server/connection.h"

namespace steadfast {

struct TransportOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free one
  std::size_t connections = 512;
  std::size_t requests_per_connection = 1000;
  ConnectionLimits limits;
};

// The connection that a request came on.
Connection& connection_of(const httplib::Request& request);

void reply_json(httplib::Response& response, int status, const Json& body);
void reply_error(const httplib::Request& request, httplib::Response& response, const ApiError& error);

class Transport : private httplib::Server {
 public:
  using Handler = std::function<void(const httplib::Request&, httplib::Response&)>;
  using BodyHandler = std::function<void(const httplib::Request&, httplib::Response&, const std::string& body)>;
  // Runs before a request's body is read; an error refuses the request.
  using Gate = std::function<std::optional<ApiError>(const httplib::Request&, const Connection&)>;
  using Finished = std::function<void(const Connection&, double seconds)>;

  explicit Transport(TransportOptions options);
  ~Transport() override;

  // All before start(). Handlers run on the connections' threads, several at once. A path that ends with "/*" serves
  // every path below it.
  void get(const std::string& path, Handler handler);
  void post(const std::string& path, BodyHandler handler);
  void set_gate(Gate gate) { gate_ = std::move(gate); }
  void set_preflight(Handler handler) { preflight_ = std::move(handler); }  // OPTIONS
  void set_decorator(Handler handler) { set_post_routing_handler(std::move(handler)); }
  void set_finished(Finished finished) { finished_ = std::move(finished); }

  Status start();
  int port() const { return port_; }
  std::size_t connections() const;

  // No new connections; those without a request end at once, the others after their reply. Returns whether all have
  // ended within `most`.
  bool drain(std::chrono::milliseconds most);
  // Ends what is left, whatever it is doing, and waits for it.
  void stop();

 private:
  struct Place {
    int fd;               // open as long as the place is there
    bool busy = false;    // has a request, from its first byte
    bool reading = true;  // waits for the client to send a head
    bool evicted = false;
  };

  Status listen_on();
  void accept_loop();
  void admit(int fd);
  bool make_room();
  void serve(int fd, std::uint64_t number);
  bool serve_request(Connection& connection, bool last);
  void set_reading(std::uint64_t number, bool reading, bool busy);
  void install_handlers();
  bool refused(const httplib::Request& request, httplib::Response& response);
  HandlerResponse route(const httplib::Request& request, httplib::Response& response);
  const Handler* find_get(const std::string& path) const;

  TransportOptions options_;
  int listener_ = -1, wake_ = -1, port_ = 0;
  std::map<std::string, Handler> gets_;
  std::map<std::string, BodyHandler> posts_;
  Gate gate_;
  Handler preflight_;
  Finished finished_;
  std::thread acceptor_;
  std::atomic<bool> draining_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Place> places_;  // by number: the oldest first
  std::uint64_t next_number_ = 0;
};

}  // namespace steadfast
