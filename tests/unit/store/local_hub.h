// A server on 127.0.0.1 that answers as a hub and as a plain file server, counts requests, and misbehaves on request.
#pragma once

#include <httplib.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "store/reporter.h"

namespace steadfast::test {

class LocalHub {
 public:
  LocalHub();
  ~LocalHub();
  LocalHub(const LocalHub&) = delete;
  LocalHub& operator=(const LocalHub&) = delete;

  httplib::Server& server() { return server_; }  // routes are added before start()
  // A file at this path, in ranges too.
  void serve(const std::string& path, std::string body, const std::string& type = "application/octet-stream");
  void start();

  std::string url(const std::string& path = "") const;
  int requests() const { return requests_; }
  std::string last_range() const;
  std::string last_authorization() const;

 private:
  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
  std::atomic<int> requests_ = 0;
  mutable std::mutex mutex_;  // of the two below
  std::string last_range_;
  std::string last_authorization_;
};

// Collects what a fetch tells.
class Collector : public Reporter {
 public:
  void note(const std::string& sentence) override { notes += sentence + "\n"; }
  void progress(const std::string&, std::uint64_t done, std::uint64_t total) override {
    last_done = done;
    last_total = total;
  }
  std::string notes;
  std::uint64_t last_done = 0;
  std::uint64_t last_total = 0;
};

// The SHA-256 of a text.
std::string sha256(const std::string& text);

}  // namespace steadfast::test
