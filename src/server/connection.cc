// Non-blocking socket, poll for every wait.
#include "server/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "server/api_error.h"
#include "server/request_head.h"

namespace steadfast {

namespace {

using Clock = std::chrono::steady_clock;

std::pair<std::string, int> address_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&address);
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    return {text, ntohs(in->sin_port)};
  }
  if (address.ss_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&address);
    inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
    return {text, ntohs(in->sin6_port)};
  }
  return {"", 0};
}

const char* reason_of(int status) {
  switch (status) {
    case 408:
      return "Request Timeout";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Bad Request";
  }
}

}  // namespace

Connection::Connection(int fd, const ConnectionLimits& limits) : fd_(fd), limits_(limits) {
  const int one = 1;
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

Connection::~Connection() { close(fd_); }

bool Connection::wait(short events, std::chrono::milliseconds most) const {
  const auto until = Clock::now() + most;
  while (true) {
    pollfd entry{fd_, events, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    const int ready = poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

bool Connection::wait_patiently(short events) {
  constexpr std::chrono::milliseconds kLook{20};  // how often give_up is asked
  const double allowed = std::chrono::duration<double>(limits_.patience).count() +
                         static_cast<double>(moved_) / static_cast<double>(limits_.slow_bytes);
  const auto began = Clock::now();
  const auto spent = [&] { return waited_ + std::chrono::duration<double>(Clock::now() - began).count(); };
  const double most = std::min(allowed, waited_ + std::chrono::duration<double>(limits_.patience).count());
  bool ready = false;
  while (!ready && spent() < most && !(give_up && give_up())) {
    const auto left = std::chrono::milliseconds(static_cast<std::int64_t>((most - spent()) * 1000) + 1);
    ready = wait(events, give_up ? std::min(left, kLook) : left);
  }
  waited_ = spent();
  return ready;
}

Connection::Received Connection::receive(std::chrono::milliseconds most) {
  char data[16 * 1024];
  while (true) {
    const ssize_t got = recv(fd_, data, sizeof data, 0);
    if (got > 0) {
      incoming_.append(data, static_cast<std::size_t>(got));
      return Received::kData;
    }
    if (got == 0) return Received::kClosed;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Received::kClosed;
    if (!wait(POLLIN, most)) return Received::kLate;
  }
}

Connection::Head Connection::refuse(int status, const std::string& message) {
  record.status = status;
  record.note = message;
  const std::string body = json_text(to_json(ApiError{status, message, "", ""}));
  const std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
      reason_of(status), body.size(), body);
  write(text.data(), text.size());
  return Head::kRefused;
}

Connection::Head Connection::read_head(const std::function<void()>& started) {
  record = {};
  give_up = nullptr;
  waited_ = 0;
  moved_ = 0;
  incoming_.erase(0, used_);
  used_ = 0;
  if (incoming_.empty() && receive(limits_.idle) != Received::kData) return Head::kClosed;
  started();
  const auto until = Clock::now() + limits_.head;
  std::size_t looked = 0;
  while (true) {
    // RFC 9112 2.2: empty lines before a request line are skipped.
    while (incoming_.starts_with("\r\n")) incoming_.erase(0, 2);
    const auto end = incoming_.find("\r\n\r\n", looked);
    if (end != std::string::npos && end + 4 <= limits_.head_bytes) return take_head(end + 4);
    if (incoming_.size() >= limits_.head_bytes) return refuse(431, "the request's headers are too large");
    looked = incoming_.size() < 3 ? 0 : incoming_.size() - 3;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    const auto received = left.count() > 0 ? receive(left) : Received::kLate;
    if (received == Received::kClosed) return Head::kClosed;
    if (received == Received::kLate) return refuse(408, "the request's headers took too long");
  }
}

Connection::Head Connection::take_head(std::size_t end) {
  RequestHead head;
  const HeadLimits limits{limits_.head_lines, limits_.target_bytes};
  if (const auto error = read_request_head(std::string_view(incoming_).substr(0, end), limits, head)) {
    return refuse(error->status, error->message);
  }
  incoming_.erase(0, end);
  record.method = head.method;
  record.path = head.target.substr(0, head.target.find('?'));
  headers_ = std::move(head.headers);
  head_ = std::move(head.text);
  head_read_ = 0;
  body_left_ = head.content_length.value_or(0);
  chunked_ = head.chunked;
  // Chunk sizes and their extensions come on top of a chunked body's own bytes.
  raw_left_ = chunked_ ? limits_.body_bytes * 2 + limits_.head_bytes : body_left_;
  wants_close_ = head.close;
  return Head::kReady;
}

const std::string* Connection::header(std::string_view name) const {
  const auto found =
      std::find_if(headers_.begin(), headers_.end(), [&](const auto& header) { return header.first == name; });
  return found == headers_.end() ? nullptr : &found->second;
}

bool Connection::peer_alive() const {
  pollfd entry{fd_, POLLRDHUP, 0};
  if (poll(&entry, 1, 0) <= 0) return true;
  return (entry.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) == 0;
}

void Connection::linger() {
  constexpr std::size_t kMostBytes = 1024 * 1024;
  constexpr std::chrono::milliseconds kMost{1000};
  shutdown(fd_, SHUT_WR);
  const auto until = Clock::now() + kMost;
  std::size_t drained = 0;
  while (drained < kMostBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    incoming_.clear();
    if (left.count() <= 0 || receive(left) != Received::kData) return;
    drained += incoming_.size();
  }
}

bool Connection::is_readable() const {
  return head_read_ < head_.size() || !incoming_.empty() || wait(POLLIN, std::chrono::milliseconds(0));
}

bool Connection::is_writable() const { return peer_alive(); }

ssize_t Connection::read(char* data, std::size_t size) {
  if (head_read_ < head_.size()) {
    const std::size_t take = std::min(size, head_.size() - head_read_);
    head_.copy(data, take, head_read_);
    head_read_ += take;
    return static_cast<ssize_t>(take);
  }
  const std::size_t most = std::min(size, raw_left_);
  if (most == 0) return 0;
  while (incoming_.empty()) {
    if (!wait_patiently(POLLIN)) return -1;
    if (receive(std::chrono::milliseconds(0)) != Received::kData) return -1;
  }
  const std::size_t take = std::min(most, incoming_.size() - used_);
  incoming_.copy(data, take, used_);
  used_ += take;
  if (used_ == incoming_.size()) {
    incoming_.clear();
    used_ = 0;
  }
  raw_left_ -= take;
  if (!chunked_) body_left_ -= take;
  moved_ += take;
  return static_cast<ssize_t>(take);
}

ssize_t Connection::write(const char* data, std::size_t size) {
  std::size_t sent = 0;
  while (sent < size) {
    const ssize_t done = send(fd_, data + sent, size - sent, MSG_NOSIGNAL);
    if (done >= 0) {
      sent += static_cast<std::size_t>(done);
      moved_ += static_cast<std::size_t>(done);
      continue;
    }
    if (errno == EINTR) continue;
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || !wait_patiently(POLLOUT)) return -1;
  }
  return static_cast<ssize_t>(sent);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0) std::tie(ip, port) = address_of(address);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0) std::tie(ip, port) = address_of(address);
}

}  // namespace steadfast
