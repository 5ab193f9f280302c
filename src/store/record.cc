// The record as JSON.
#include "store/record.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace steadfast {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFile = ".steadfast.json";

std::optional<FileRecord> read_file(const nlohmann::json& entry) {
  if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() || !entry.contains("bytes") ||
      !entry["bytes"].is_number_unsigned() || !entry.contains("sha256") || !entry["sha256"].is_string()) {
    return std::nullopt;
  }
  return FileRecord{entry["name"], entry["bytes"], entry["sha256"]};
}

}  // namespace

std::optional<ModelRecord> read_record(const fs::path& folder) {
  std::ifstream file(folder / kFile, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("source") || !json["source"].is_string() || !json.contains("files") ||
      !json["files"].is_array()) {
    return std::nullopt;
  }
  ModelRecord record{json["source"], {}};
  for (const auto& entry : json["files"]) {
    auto read = read_file(entry);
    if (!read) return std::nullopt;
    record.files.push_back(std::move(*read));
  }
  return record;
}

Status write_record(const fs::path& folder, const ModelRecord& record) {
  auto files = nlohmann::json::array();
  for (const auto& [name, bytes, sha256] : record.files) {
    files.push_back({{"name", name}, {"bytes", bytes}, {"sha256", sha256}});
  }
  const nlohmann::json json = {{"source", record.source}, {"files", files}};
  std::ofstream file(folder / kFile, std::ios::binary);
  file << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  file.close();
  if (file.good()) return {};
  return Status::error("{}: cannot be written; check the free space", (folder / kFile).string());
}

bool sizes_hold(const fs::path& folder, const ModelRecord& record) {
  for (const FileRecord& file : record.files) {
    std::error_code error;
    if (fs::file_size(folder / file.name, error) != file.bytes || error) return false;
  }
  return !record.files.empty();
}

}  // namespace steadfast
