// Line by line; every refusal is a sentence of its own.
#include "server/request_head.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace steadfast {

namespace {

constexpr std::string_view kTokenMarks = "!#$%&'*+-.^_`|~";

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || kTokenMarks.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{}
                                         : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Ranges and compressed replies are not served; the other names are ones that httplib adds itself.
bool is_dropped(const std::string& name) {
  constexpr std::array kDropped = {"range",       "if-range",   "accept-encoding", "remote_addr",
                                   "remote_port", "local_addr", "local_port"};
  return std::find(kDropped.begin(), kDropped.end(), name) != kDropped.end();
}

bool has_item(std::string_view list, std::string_view item) {
  const std::string text = lower(list);
  for (std::size_t at = 0; at <= text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    if (trimmed(std::string_view(text).substr(at, comma - at)) == item) return true;
    at = comma + 1;
  }
  return false;
}

std::optional<HeadError> read_line(std::string_view line, const HeadLimits& limits, RequestHead& head, bool& old) {
  const auto first = line.find(' ');
  const auto second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || line.find(' ', second + 1) != std::string_view::npos) {
    return HeadError{400, "the request line must be: method, target, version"};
  }
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, second - first - 1);
  const auto version = line.substr(second + 1);
  if (!is_token(head.method)) return HeadError{400, "the request's method is malformed"};
  if (head.target.size() > limits.target_bytes) return HeadError{414, "the request's target is too long"};
  const bool plain = std::all_of(head.target.begin(), head.target.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!head.target.starts_with('/') || !plain) return HeadError{400, "the request's target must be a path in ASCII"};
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return HeadError{505, "this server speaks HTTP/1.1"};
  old = version == "HTTP/1.0";
  return std::nullopt;
}

std::optional<HeadError> read_length(const std::string& value, RequestHead& head) {
  const bool digits = !value.empty() && value.size() <= 18 &&
                      std::all_of(value.begin(), value.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!digits) return HeadError{400, "Content-Length must be a number"};
  if (head.content_length) return HeadError{400, "Content-Length is there twice"};
  head.content_length = std::stoull(value);
  return std::nullopt;
}

std::optional<HeadError> read_header(std::string_view line, RequestHead& head) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return HeadError{400, "a header line is malformed"};
  }
  const std::string name = lower(line.substr(0, colon));
  const std::string value(trimmed(line.substr(colon + 1)));
  if (name == "content-length") {
    if (auto error = read_length(value, head)) return error;
  }
  if (name == "transfer-encoding") {
    if (head.chunked || lower(value) != "chunked") return HeadError{400, "the only Transfer-Encoding here is chunked"};
    head.chunked = true;
  }
  if (name == "connection" && has_item(value, "close")) head.close = true;
  if (name == "host" && std::any_of(head.headers.begin(), head.headers.end(),
                                    [](const auto& header) { return header.first == "host"; })) {
    return HeadError{400, "Host is there twice"};
  }
  if (!is_dropped(name)) head.text.append(line).append("\r\n");
  head.headers.emplace_back(name, value);
  return std::nullopt;
}

}  // namespace

std::optional<HeadError> read_request_head(std::string_view text, const HeadLimits& limits, RequestHead& head) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool alone = (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) ||
                       (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'));
    if (alone || text[i] == '\0') return HeadError{400, "lines must end with CRLF and hold no NUL"};
  }
  bool old = false, has_line = false;
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find("\r\n", at);
    const auto line = text.substr(at, end - at);
    at = end + 2;
    if (line.empty()) break;
    if (!has_line) {
      if (auto error = read_line(line, limits, head, old)) return error;
      head.text.append(line).append("\r\n");
      has_line = true;
      continue;
    }
    if (++lines > limits.lines) return HeadError{431, "the request has too many headers"};
    if (auto error = read_header(line, head)) return error;
  }
  if (!has_line) return HeadError{400, "the request line is missing"};
  if (head.chunked && (head.content_length || old)) {
    return HeadError{400, "Transfer-Encoding goes with HTTP/1.1 and without Content-Length"};
  }
  const bool has_host =
      std::any_of(head.headers.begin(), head.headers.end(), [](const auto& header) { return header.first == "host"; });
  if (!old && !has_host) return HeadError{400, "the Host header is missing"};
  head.close = head.close || old;
  head.text += "\r\n";
  return std::nullopt;
}

}  // namespace steadfast
