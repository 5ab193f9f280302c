// One client's socket as httplib's Stream, with limits that httplib 0.11 lacks: the request's head is read and checked
// as a whole before httplib parses it, bodies never read past their end, and a peer that is too slow is given up on.
// Owned and used by one thread.
#pragma once

#include <httplib.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace steadfast {

struct ConnectionLimits {
  std::size_t head_bytes = 32 * 1024;
  std::size_t head_lines = 100;
  std::size_t target_bytes = 4096;  // method, path and query
  std::size_t body_bytes = 8 * 1024 * 1024;
  std::chrono::milliseconds idle{30'000};      // to the first byte of a request
  std::chrono::milliseconds head{10'000};      // from there to the end of its head
  std::chrono::milliseconds patience{30'000};  // waiting for the peer in all, beside what slow_bytes allows for
  std::size_t slow_bytes = 4096;               // each so many bytes earn another second
};

// What the log and the metrics say of a request. Filled in by whoever knows.
struct RequestRecord {
  std::string id, method, path;
  int status = 0;
  int prompt_tokens = 0, reply_tokens = 0;
  std::string note;  // finish reason, or why it failed
};

class Connection : public httplib::Stream {
 public:
  enum class Head { kReady, kClosed, kRefused };

  Connection(int fd, const ConnectionLimits& limits);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Waits for the next request's head. kRefused: it broke a rule, the peer has been told, close the connection.
  // kClosed: nothing more comes. `started` is called at the first byte.
  Head read_head(const std::function<void()>& started);

  // A header of this request as it was sent (httplib decodes %XX in its own copy); names are in lower case.
  const std::string* header(std::string_view name) const;
  bool chunked() const { return chunked_; }
  std::size_t body_left() const { return body_left_; }  // of a body with a Content-Length
  bool wants_close() const { return wants_close_; }
  bool peer_alive() const;  // false once the peer has closed its side

  // While set, a write that waits for the peer asks it every few milliseconds and fails once it says so.
  std::function<bool()> give_up;

  // Lets the peer read the last reply although it may still be sending: waits a little for its end.
  void linger();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* data, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return fd_; }

  RequestRecord record;

 private:
  bool wait(short events, std::chrono::milliseconds most) const;
  bool wait_patiently(short events);
  enum class Received { kData, kClosed, kLate };
  Received receive(std::chrono::milliseconds most);
  Head refuse(int status, const std::string& message);
  Head take_head(std::size_t end);

  int fd_;
  ConnectionLimits limits_;
  std::string incoming_;  // received; the first used_ bytes were handed out
  std::size_t used_ = 0;
  std::string head_;  // the checked head that httplib reads
  std::size_t head_read_ = 0;
  std::vector<std::pair<std::string, std::string>> headers_;
  std::size_t body_left_ = 0, raw_left_ = 0;
  bool chunked_ = false, wants_close_ = false;
  double waited_ = 0;  // seconds, for this request
  std::size_t moved_ = 0;
};

// What a request carries of its connection (in httplib's field `progress`, which a server does not use otherwise).
struct ConnectionOwner {
  Connection* connection;
  bool operator()(std::uint64_t, std::uint64_t) const { return connection->peer_alive(); }
};

}  // namespace steadfast
