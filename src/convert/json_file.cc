// Small files, written whole.
#include "convert/json_file.h"

#include <fstream>

namespace steadfast {

Status write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file.fail()) return Status::error("{} cannot be written; check the folder and the free space", path.string());
  return Status::ok();
}

template <typename Json>
Status write_json(const std::filesystem::path& path, const Json& json) {
  std::string text;
  try {
    text = json.dump(2);
  } catch (const nlohmann::json::type_error&) {
    return Status::error("{} would hold text that is not UTF-8; is the model's metadata whole?", path.string());
  }
  return write_text(path, text + "\n");
}

template Status write_json(const std::filesystem::path& path, const nlohmann::json& json);
template Status write_json(const std::filesystem::path& path, const nlohmann::ordered_json& json);

}  // namespace steadfast
