// OpenAI's error types by HTTP status, and text that is safe to write.
#include "server/api_error.h"

#include "text/utf8.h"

namespace steadfast {

namespace {

const char* error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

Json to_json(const ApiError& error) {
  Json body = {{"message", error.message}, {"type", error_type(error.status)}, {"param", nullptr}, {"code", nullptr}};
  if (!error.param.empty()) body["param"] = error.param;
  if (!error.code.empty()) body["code"] = error.code;
  return {{"error", std::move(body)}};
}

std::string json_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string shown_word(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    const bool control = step.code < 0x20 || (step.code >= 0x7F && step.code < 0xA0) || step.code == 0x2028 ||
                         step.code == 0x2029 || !step.valid;
    const std::size_t bytes = control ? 1 : step.bytes;
    if (out.size() + bytes > kMost) return out + "...";
    if (control) {
      out += '?';
    } else {
      out += text.substr(at, step.bytes);
    }
    at += step.bytes;
  }
  return out;
}

}  // namespace steadfast
