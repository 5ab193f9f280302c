// Writing of the small files beside the weights.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/status.h"

namespace steadfast {

// Indented, with a newline at its end. Text that is not UTF-8 is an error.
template <typename Json>
Status write_json(const std::filesystem::path& path, const Json& json);

Status write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace steadfast
