// Finding and reading a tokenizer, reading input files whole.
#include "tokenizer_input.h"

#include <fstream>
#include <sstream>

#include "command.h"
#include "formats/gguf.h"

namespace steadfast {

// A folder without tokenizer.json may hold the model as one GGUF file.
std::filesystem::path only_gguf(const std::filesystem::path& folder) {
  std::filesystem::path found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".gguf") continue;
    if (!found.empty()) return {};
    found = entry.path();
  }
  return found;
}

Result<Tokenizer> load_tokenizer(const std::string& model) {
  const auto path = resolve_model(model);
  if (!path) return path.status();
  std::filesystem::path file = *path;
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    if (std::filesystem::exists(file / "tokenizer.json", error)) return Tokenizer::from_folder(file);
    file = only_gguf(*path);
    if (file.empty()) return Tokenizer::from_folder(*path);  // its error says what is missing
  }
  const auto gguf = GgufFile::open(file);
  if (!gguf) return gguf.status();
  return Tokenizer::from_gguf(**gguf);
}

Result<std::string> read_input(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return Status::error("{} is a folder: give a file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::error("{} cannot be read: check the path and its permissions", path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

Result<nlohmann::json> read_json_input(const std::string& path) {
  const auto text = read_input(path);
  if (!text) return text.status();
  auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_discarded()) return Status::error("{} is not JSON: check what wrote it", path);
  return json;
}

}  // namespace steadfast
