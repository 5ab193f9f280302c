// Listening, places and their threads.
#include "server/transport.h"

#include <netdb.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace steadfast {

namespace {

std::string full_reply() {
  const std::string body = json_text(to_json(ApiError{503, "all connections are taken; try again later", "", ""}));
  return fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {}\r\nRetry-After: 1\r\n"
      "Connection: close\r\n\r\n{}",
      body.size(), body);
}

// Ends every wait on a socket, now and later.
void interrupt(int fd) { shutdown(fd, SHUT_RDWR); }

void close_if_open(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

}  // namespace

Transport::Transport(TransportOptions options) : options_(std::move(options)) { install_handlers(); }

Transport::~Transport() { stop(); }

void Transport::get(const std::string& path, Handler handler) { gets_[path] = std::move(handler); }

Status Transport::listen_on() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(options_.port);
  if (const int error = getaddrinfo(options_.host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return Status::error("cannot listen on {}: {}; give an address of this machine", options_.host,
                         gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  std::string why = "no address";
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const int one = 1;
    listener_ = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener_ < 0) continue;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (::bind(listener_, address->ai_addr, address->ai_addrlen) == 0 && ::listen(listener_, SOMAXCONN) == 0) {
      sockaddr_storage bound{};
      socklen_t size = sizeof bound;
      getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &size);
      port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
      return Status::ok();
    }
    why = std::strerror(errno);
    close_if_open(listener_);
  }
  return Status::error("cannot listen on {} port {}: {}; choose another --port or --host", options_.host, port, why);
}

Status Transport::start() {
  if (auto status = listen_on(); !status) return status;
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return Status::error("cannot start the server: {}", std::strerror(errno));
  svr_sock_ = listener_;  // httplib ends its replies early while this is unset
  acceptor_ = std::thread([this] { accept_loop(); });
  return Status::ok();
}

void Transport::accept_loop() {
  while (!draining_) {
    pollfd entries[] = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (poll(entries, 2, -1) < 0 && errno != EINTR) {
      spdlog::error("waiting for connections failed: {}", std::strerror(errno));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (draining_ || (entries[0].revents & POLLIN) == 0) continue;
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      admit(fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      spdlog::warn("a connection has to wait: {}", std::strerror(errno));
      const std::lock_guard lock(mutex_);
      make_room();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

// Ends the connection that has waited longest for its client. The caller holds the lock.
bool Transport::make_room() {
  const auto oldest = std::find_if(places_.begin(), places_.end(),
                                   [](const auto& entry) { return entry.second.reading && !entry.second.evicted; });
  if (oldest == places_.end()) return false;
  oldest->second.evicted = true;
  interrupt(oldest->second.fd);
  return true;
}

void Transport::admit(int fd) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto taken =
        std::count_if(places_.begin(), places_.end(), [](const auto& entry) { return !entry.second.evicted; });
    if (static_cast<std::size_t>(taken) >= options_.connections && !make_room()) {
      const std::string text = full_reply();
      send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      close(fd);
      return;
    }
    number = next_number_++;
    places_[number] = Place{fd};
  }
  try {
    std::thread([this, fd, number] { serve(fd, number); }).detach();
  } catch (const std::system_error& error) {
    spdlog::warn("no thread for a connection: {}", error.what());
    const std::lock_guard lock(mutex_);
    places_.erase(number);
    close(fd);
    changed_.notify_all();
  }
}

void Transport::set_reading(std::uint64_t number, bool reading, bool busy) {
  const std::lock_guard lock(mutex_);
  auto& place = places_.at(number);
  place.reading = reading;
  place.busy = busy;
  if (draining_ && !busy) interrupt(place.fd);
}

void Transport::serve(int fd, std::uint64_t number) {
  Connection connection(fd, options_.limits);
  for (std::size_t i = 1; i <= options_.requests_per_connection; ++i) {
    set_reading(number, true, false);
    const auto head = connection.read_head([&] { set_reading(number, true, true); });
    if (head == Connection::Head::kClosed) break;
    set_reading(number, false, true);
    if (head == Connection::Head::kRefused) {
      if (finished_) finished_(connection, 0);
      connection.linger();
      break;
    }
    const bool go_on = serve_request(connection, i == options_.requests_per_connection);
    if (!go_on) {
      connection.linger();
      break;
    }
  }
  const std::lock_guard lock(mutex_);
  places_.erase(number);
  changed_.notify_all();
}

bool Transport::serve_request(Connection& connection, bool last) {
  const auto started = std::chrono::steady_clock::now();
  const bool close_after = last || connection.wants_close() || connection.chunked() || draining_;
  bool closed = false;
  bool done = false;
  try {
    done = process_request(connection, close_after, closed, [&connection](httplib::Request& request) {
      request.progress = ConnectionOwner{&connection};
    });
  } catch (const std::exception& error) {
    spdlog::error("a request failed: {}", error.what());
  }
  if (connection.record.status == 0) connection.record.status = 400;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  if (finished_) finished_(connection, seconds.count());
  return done && !closed && !close_after && !draining_ && connection.body_left() == 0;
}

std::size_t Transport::connections() const {
  const std::lock_guard lock(mutex_);
  return places_.size();
}

bool Transport::drain(std::chrono::milliseconds most) {
  draining_ = true;
  const std::uint64_t one = 1;
  if (wake_ >= 0 && ::write(wake_, &one, sizeof one) < 0) spdlog::warn("waking the listener failed");
  if (acceptor_.joinable()) acceptor_.join();
  close_if_open(listener_);
  close_if_open(wake_);
  std::unique_lock lock(mutex_);
  for (auto& [number, place] : places_) {
    if (!place.busy) interrupt(place.fd);
  }
  return changed_.wait_for(lock, most, [this] { return places_.empty(); });
}

void Transport::stop() {
  drain(std::chrono::milliseconds(0));
  svr_sock_ = INVALID_SOCKET;
  std::unique_lock lock(mutex_);
  for (auto& [number, place] : places_) {
    interrupt(place.fd);
  }
  changed_.wait(lock, [this] { return places_.empty(); });
}

}  // namespace steadfast
