// CHECK(condition, format, values...): for what only our own code can cause; prints the values and aborts.
// What a user, a file or a request can cause is a Status (base/status.h), never a CHECK.
#pragma once

#include <fmt/format.h>

#include <string>

namespace steadfast {

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);

}  // namespace steadfast

#define CHECK(condition, ...)                                                                                \
  do {                                                                                                       \
    if (!(condition)) ::steadfast::check_failed(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
  } while (false)
