// What `pull` writes beside a model, as .steadfast.json: where it came from, and each file's size and digest. The
// record is written last, so a folder that has one was complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace steadfast {

struct FileRecord {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct ModelRecord {
  std::string source;
  std::vector<FileRecord> files;
};

// Nothing: no record, or one that cannot be read.
std::optional<ModelRecord> read_record(const std::filesystem::path& folder);
Status write_record(const std::filesystem::path& folder, const ModelRecord& record);

// Whether every file is there with its size: the cheap check, which reads no file.
bool sizes_hold(const std::filesystem::path& folder, const ModelRecord& record);

}  // namespace steadfast
