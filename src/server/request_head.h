// A request's head (request line and headers) checked by RFC 9112's rules before a lenient parser sees it: what two
// programs could read in two ways is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace steadfast {

struct RequestHead {
  std::string method, target;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case, values as sent
  std::string text;  // the head without the headers that this server does not act on
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool close = false;  // the connection ends after this request
};

struct HeadError {
  int status;
  std::string message;
};

struct HeadLimits {
  std::size_t lines = 100;
  std::size_t target_bytes = 4096;
};

// `text` ends with the empty line. Exactly one of the two is returned through: an error, or `head` filled.
std::optional<HeadError> read_request_head(std::string_view text, const HeadLimits& limits, RequestHead& head);

}  // namespace steadfast
