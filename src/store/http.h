// Fetching over HTTP(S) through libcurl: the system's certificates and proxies, redirects (never from https to http),
// no endless waits. A token goes to the host it is meant for alone, never to where that host redirects.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/status.h"
#include "store/record.h"
#include "store/reporter.h"

namespace steadfast {

struct Download {
  std::string url;
  std::optional<std::string> token;
  std::filesystem::path target;
  std::uint64_t most_bytes = 0;        // a longer file is an error
  std::optional<std::uint64_t> bytes;  // the size, where it is known
  std::optional<std::string> sha256;   // the digest, where it is known: an interrupted download is then continued
};

// The body of a small answer.
Result<std::string> http_get(const std::string& url, const std::optional<std::string>& token, std::uint64_t most_bytes);

// Writes target.part and renames it to target when size and digest hold. A target that is there with the right size is
// kept and digested. The record's name is the target's.
Result<FileRecord> http_download(const Download& download, Reporter& reporter);

// The parts of an http or https URL that pull looks at; nothing for anything else.
struct UrlParts {
  bool secure = false;    // https
  bool loopback = false;  // 127.0.0.1, ::1 or localhost
  std::string last;       // the last part of the path, as it is written
};
std::optional<UrlParts> split_url(const std::string& url);

}  // namespace steadfast
