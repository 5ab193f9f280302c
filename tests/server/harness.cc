// Blocking sockets and httplib's client.
#include "harness.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

namespace steadfast::testing {

void HttpTest::start(FakeOptions fake, ServerOptions options) {
  options.port = 0;
  service_ = std::make_unique<FakeService>(std::move(fake));
  auto started = ApiServer::start(*service_, std::move(options));
  ASSERT_TRUE(started) << started.message();
  server_ = std::move(*started);
}

std::unique_ptr<httplib::Client> HttpTest::client() const {
  auto made = std::make_unique<httplib::Client>("127.0.0.1", server_->port());
  made->set_read_timeout(60);
  made->set_keep_alive(true);
  return made;
}

Reply HttpTest::get(const std::string& path, const httplib::Headers& headers) const {
  const auto result = client()->Get(path, headers);
  if (!result) {
    ADD_FAILURE() << "GET " << path << ": " << httplib::to_string(result.error());
    return {};
  }
  return {result->status, result->headers, result->body};
}

Reply HttpTest::post_text(const std::string& path, const std::string& body, const httplib::Headers& headers) const {
  const auto result = client()->Post(path, headers, body, "application/json");
  if (!result) {
    ADD_FAILURE() << "POST " << path << ": " << httplib::to_string(result.error());
    return {};
  }
  return {result->status, result->headers, result->body};
}

Reply HttpTest::post(const std::string& path, const Json& body, const httplib::Headers& headers) const {
  return post_text(path, body.dump(), headers);
}

Json HttpTest::chat(const std::string& text, const Json& more) {
  Json body = {{"messages", Json::array({{{"role", "user"}, {"content", text}}})}};
  body.update(more);
  return body;
}

std::vector<Json> HttpTest::events(const std::string& body) {
  std::vector<Json> out;
  bool done = false;
  for (std::size_t at = 0; at < body.size();) {
    const auto end = body.find("\n\n", at);
    const std::string event = body.substr(at, end - at);
    EXPECT_EQ(event.substr(0, 6), "data: ");
    EXPECT_FALSE(done) << "an event after [DONE]: " << event;
    if (event == "data: [DONE]") {
      done = true;
    } else {
      out.push_back(Json::parse(event.substr(6)));
    }
    at = end + 2;
  }
  EXPECT_TRUE(done);
  return out;
}

RawClient::RawClient(int port, int receive_bytes) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
  if (receive_bytes > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const timeval limit{60, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

RawClient::~RawClient() { close(); }

void RawClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool RawClient::send(const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const auto done = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (done <= 0) return false;
    sent += static_cast<std::size_t>(done);
  }
  return true;
}

std::string RawClient::read_some() {
  char data[4096];
  const auto got = ::recv(fd_, data, sizeof data, 0);
  return got > 0 ? std::string(data, static_cast<std::size_t>(got)) : "";
}

std::string RawClient::read_all() {
  std::string all;
  while (true) {
    const std::string more = read_some();
    if (more.empty()) return all;
    all += more;
  }
}

std::string raw_post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace steadfast::testing
