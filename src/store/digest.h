// SHA-256 of files, as 64 lower-case hexadecimal digits.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace steadfast {

Result<std::string> sha256_of_file(const std::filesystem::path& path);

// 64 hexadecimal digits, in lower case.
bool is_sha256(std::string_view text);

}  // namespace steadfast
