// Golden files of the template engine: where they lie, and how they are read and rendered.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/jinja/template.h"

namespace steadfast {

inline nlohmann::ordered_json read_json_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::ordered_json::parse(file);
}

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(STEADFAST_SOURCE_DIR) / "tests" / "golden" / "text";
}

// The rendered text, or the error.
inline Result<std::string> render(std::string_view source, const nlohmann::ordered_json& context) {
  const auto parsed = jinja::Template::parse(source);
  if (!parsed) return parsed.status();
  jinja::Template::Context names;
  for (const auto& [name, value] : context.items()) names.emplace_back(name, &value);
  return parsed->render(names, 0);
}

}  // namespace steadfast
