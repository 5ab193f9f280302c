// cpp-httplib on a free port of the loopback interface.
#include "local_hub.h"

#include <cstdlib>

#include "base/check.h"
#include "store/digest.h"
#include "support/temp_folder.h"

namespace steadfast::test {

LocalHub::LocalHub() {
  setenv("no_proxy", "127.0.0.1", 1);  // for libcurl, on machines behind a proxy
  server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response&) {
    const std::scoped_lock lock(mutex_);
    last_range_ = request.get_header_value("Range");
    last_authorization_ = request.get_header_value("Authorization");
    ++requests_;
    return httplib::Server::HandlerResponse::Unhandled;
  });
  port_ = server_.bind_to_any_port("127.0.0.1");
  CHECK(port_ > 0, "no port");
}

LocalHub::~LocalHub() {
  server_.stop();
  if (thread_.joinable()) thread_.join();
}

void LocalHub::serve(const std::string& path, std::string body, const std::string& type) {
  server_.Get(path, [body = std::move(body), type](const httplib::Request&, httplib::Response& response) {
    response.set_content(body, type);
  });
}

void LocalHub::start() {
  thread_ = std::thread([this] { server_.listen_after_bind(); });
  while (!server_.is_running()) std::this_thread::yield();
}

std::string LocalHub::last_range() const {
  const std::scoped_lock lock(mutex_);
  return last_range_;
}

std::string LocalHub::last_authorization() const {
  const std::scoped_lock lock(mutex_);
  return last_authorization_;
}

std::string LocalHub::url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }

std::string sha256(const std::string& text) {
  const TempFolder folder;
  return *sha256_of_file(folder.write("text", text));
}

}  // namespace steadfast::test
