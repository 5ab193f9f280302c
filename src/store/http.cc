// One easy handle a request; errors become sentences by curl's code and the HTTP status.
#include "store/http.h"

#include <curl/curl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>

#include "store/digest.h"

namespace steadfast {
namespace fs = std::filesystem;
namespace {

constexpr long kMostRedirects = 10;
constexpr long kConnectSeconds = 30;
constexpr long kStallSeconds = 60;  // without a byte

struct Request {
  const std::string& url;
  const std::optional<std::string>& token;
  std::uint64_t from = 0;  // the first byte that is wanted
  // Each piece of the body; `fresh` is true at the first piece of a whole body, which may come though `from` was asked.
  std::function<Status(const char* data, std::size_t size, bool fresh)> body;
  std::function<void(std::uint64_t received, std::uint64_t expected)> progress;
};

struct Transfer {
  const Request& request;
  CURL* handle;
  bool started = false;
  Status status;
};

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  long code = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &code);
  const bool fresh = !transfer.started && (transfer.request.from == 0 || code != 206);
  transfer.started = true;
  transfer.status = transfer.request.body(data, size, fresh);
  return transfer.status ? size : CURL_WRITEFUNC_ERROR;
}

int on_progress(void* user, curl_off_t expected, curl_off_t received, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<Transfer*>(user);
  long code = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &code);
  if (transfer.request.progress && (code == 200 || code == 206)) {
    transfer.request.progress(static_cast<std::uint64_t>(received), static_cast<std::uint64_t>(expected));
  }
  return 0;
}

Status http_error(const std::string& url, long code) {
  if (code == 401 || code == 403) {
    return Status::error("{}: the server refuses it (HTTP {}); set HF_TOKEN to a token that may read this model", url,
                         code);
  }
  if (code == 404) return Status::error("{}: the server has no such file or model (HTTP 404); check the name", url);
  if (code == 429) return Status::error("{}: the server asks for a pause (HTTP 429); try again later", url);
  return Status::error("{}: the server answers with HTTP {}; try again later", url, code);
}

Status curl_error(CURLcode code, const std::string& url, const char* detail, long http) {
  const std::string why = *detail != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_HTTP_RETURNED_ERROR:
      return http_error(url, http);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return Status::error("{}: the server cannot be reached ({}); check the network and the proxy settings", url, why);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Status::error("{}: is not a URL that can be fetched ({}); give an https URL", url, why);
    case CURLE_PEER_FAILED_VERIFICATION:
      return Status::error("{}: the server's certificate does not hold ({}); check the system's certificates", url,
                           why);
    default:
      return Status::error("{}: the transfer failed ({}); run the same command again", url, why);
  }
}

void set_options(CURL* handle, Transfer& transfer, char* detail) {
  const Request& request = transfer.request;
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, request.url.starts_with("http:") ? "http,https" : "https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, kMostRedirects);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "steadfast");
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &on_progress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &transfer);
  if (request.token) {
    curl_easy_setopt(handle, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(handle, CURLOPT_XOAUTH2_BEARER, request.token->c_str());
  }
  // As a range of our own, not CURLOPT_RESUME_FROM: a server that sends the whole file instead is then no error.
  const std::string range = fmt::format("{}-", request.from);
  if (request.from > 0) curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
}

// The HTTP status of the answer in `code`, also after an error.
Status perform(const Request& request, long& code) {
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, void (*)(CURL*)> handle(curl_easy_init(), &curl_easy_cleanup);
  if (kReady != CURLE_OK || !handle) return Status::error("libcurl does not start; check its installation");
  if (request.token) {
    const auto parts = split_url(request.url);
    if (parts && !parts->secure && !parts->loopback) {
      return Status::error("{}: the token would travel unencrypted; set HF_ENDPOINT to an https URL, or unset HF_TOKEN",
                           request.url);
    }
  }
  char detail[CURL_ERROR_SIZE] = "";
  Transfer transfer{request, handle.get(), false, {}};
  set_options(handle.get(), transfer, detail);
  const CURLcode result = curl_easy_perform(handle.get());
  code = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &code);
  if (!transfer.status) return transfer.status;
  return result == CURLE_OK ? Status::ok() : curl_error(result, request.url, detail, code);
}

// target.part: appended to, or begun again.
class PartFile {
 public:
  explicit PartFile(fs::path path) : path_(std::move(path)) {}

  std::uint64_t size() const {
    std::error_code error;
    const auto bytes = fs::file_size(path_, error);
    return error ? 0 : bytes;
  }
  void remove() {
    file_.reset();
    std::error_code error;
    fs::remove(path_, error);
  }
  Status write(const char* data, std::size_t count, bool fresh) {
    if (fresh || !file_) file_.reset(std::fopen(path_.c_str(), fresh ? "wb" : "ab"));
    if (!file_ || std::fwrite(data, 1, count, file_.get()) != count) return failed();
    return {};
  }
  Status close() {
    if (!file_) file_.reset(std::fopen(path_.c_str(), "ab"));  // an empty body
    return file_ && std::fclose(file_.release()) == 0 ? Status::ok() : failed();
  }

 private:
  Status failed() const {
    return Status::error("{}: cannot be written ({}); check the permissions and the free space", path_.string(),
                         std::strerror(errno));
  }
  fs::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, &std::fclose};
};

Status too_long(const Download& download) {
  return Status::error("{}: is longer than the limit of {} bytes; raise it with --max-size", download.url,
                       download.most_bytes);
}

// Fetches what the part lacks. A server that does not know the range makes it start again, once.
Status fetch_part(const Download& download, PartFile& part, Reporter& reporter) {
  const std::string name = download.target.filename().string();
  for (bool again = true;; again = false) {
    const std::uint64_t from = part.size();
    std::uint64_t total = from;
    Request request{download.url, download.token, from, {}, {}};
    request.body = [&](const char* data, std::size_t size, bool fresh) {
      total = (fresh ? 0 : total) + size;
      return total > download.most_bytes ? too_long(download) : part.write(data, size, fresh);
    };
    request.progress = [&](std::uint64_t received, std::uint64_t expected) {
      const std::uint64_t before = total > received ? total - received : 0;
      const std::uint64_t announced = expected == 0 ? 0 : before + expected;
      reporter.progress(name, total, download.bytes.value_or(announced));
    };
    long code = 0;
    Status status = perform(request, code);
    if (code != 416 || from == 0 || !again) return status ? part.close() : status;
    part.remove();
  }
}

Result<FileRecord> check_file(const Download& download, const fs::path& path) {
  std::error_code error;
  FileRecord record{download.target.filename().string(), fs::file_size(path, error), {}};
  if (error)
    return Status::error("{}: cannot be read ({}); run the same command again", path.string(), error.message());
  if (download.bytes && record.bytes != *download.bytes) {
    return Status::error("{}: {} bytes came where {} were announced; run the same command again", download.url,
                         record.bytes, *download.bytes);
  }
  auto digest = sha256_of_file(path);
  if (!digest) return digest.status();
  if (download.sha256 && *digest != *download.sha256) {
    return Status::error(
        "{}: what came has the SHA-256 {} and not {}; it was removed: check the source, then run the same "
        "command again",
        download.url, *digest, *download.sha256);
  }
  record.sha256 = std::move(*digest);
  return record;
}

}  // namespace

Result<std::string> http_get(const std::string& url, const std::optional<std::string>& token,
                             std::uint64_t most_bytes) {
  std::string text;
  Request request{url, token, 0, {}, {}};
  request.body = [&](const char* data, std::size_t size, bool) {
    if (size > most_bytes - text.size())
      return Status::error("{}: the answer is longer than {} bytes; check the server", url, most_bytes);
    text.append(data, size);
    return Status::ok();
  };
  long code = 0;
  if (auto status = perform(request, code); !status) return status;
  return text;
}

Result<FileRecord> http_download(const Download& download, Reporter& reporter) {
  if (download.bytes && *download.bytes > download.most_bytes) return too_long(download);
  std::error_code error;
  if (download.sha256 && fs::exists(download.target, error)) {
    if (auto record = check_file(download, download.target)) return record;
    fs::remove(download.target, error);
  }
  fs::path part_path = download.target;
  part_path += ".part";
  PartFile part(part_path);
  if (!download.sha256 || (download.bytes && part.size() > *download.bytes)) part.remove();
  if (!download.bytes || part.size() < *download.bytes || *download.bytes == 0) {
    if (auto status = fetch_part(download, part, reporter); !status) {
      if (!download.sha256) part.remove();
      return status;
    }
  }
  auto record = check_file(download, part_path);
  if (!record) {
    part.remove();
    return record.status();
  }
  reporter.progress(record->name, record->bytes, record->bytes);
  fs::rename(part_path, download.target, error);
  if (error)
    return Status::error("{}: cannot be renamed ({}); check the permissions", part_path.string(), error.message());
  return record;
}

std::optional<UrlParts> split_url(const std::string& url) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> handle(curl_url(), &curl_url_cleanup);
  if (!handle || curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return std::nullopt;
  const auto part = [&](CURLUPart what) -> std::optional<std::string> {
    char* text = nullptr;
    if (curl_url_get(handle.get(), what, &text, 0) != CURLUE_OK) return std::nullopt;
    const std::unique_ptr<char, void (*)(void*)> owned(text, &curl_free);
    return std::string(text);
  };
  const auto scheme = part(CURLUPART_SCHEME);
  const auto host = part(CURLUPART_HOST);
  const auto path = part(CURLUPART_PATH);
  if (!scheme || !host || !path || (*scheme != "https" && *scheme != "http")) return std::nullopt;
  UrlParts parts;
  parts.secure = *scheme == "https";
  parts.loopback = *host == "127.0.0.1" || *host == "localhost" || *host == "[::1]";
  parts.last = path->substr(path->rfind('/') + 1);
  return parts;
}

}  // namespace steadfast
