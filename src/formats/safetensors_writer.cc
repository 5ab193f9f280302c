// Writes a safetensors file: header and data to a temporary file beside the target, which is renamed when it is whole.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/safetensors.h"
#include "formats/untrusted.h"

namespace steadfast {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::string_view kMetadata = "__metadata__";

Status check_tensor(const TensorView& tensor, const std::string& file) {
  if (info(tensor.dtype).block_elements != 1) {
    return Status::error("{}: tensor {} is of type {}, which safetensors cannot hold; convert it first", file,
                         shown(tensor.name), info(tensor.dtype).name);
  }
  if (!is_clean_name(tensor.name) || tensor.name == kMetadata) {
    return Status::error("{}: {} cannot be the name of a tensor; rename it", file, shown(tensor.name));
  }
  const auto bytes = checked_bytes(tensor.dtype, tensor.shape);
  if (!bytes || *bytes != tensor.data.size()) {
    return Status::error("{}: tensor {} of shape {} has {} bytes of data, which do not fit it; correct the tensor",
                         file, shown(tensor.name), shape_text(tensor.shape), tensor.data.size());
  }
  return {};
}

Result<std::string> make_header(std::span<const TensorView> tensors, const std::map<std::string, std::string>& metadata,
                                const std::string& file) {
  auto header = nlohmann::ordered_json::object();
  for (const auto& [key, value] : metadata) {
    if (!is_utf8(key) || !is_utf8(value)) {
      return Status::error("{}: the metadata entry {} is not UTF-8; correct it", file, shown(key));
    }
    header[kMetadata][key] = value;
  }
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    if (auto status = check_tensor(tensor, file); !status) return status;
    if (!names.insert(tensor.name).second) {
      return Status::error("{}: two tensors are called {}; rename one", file, shown(tensor.name));
    }
    const std::uint64_t end = offset + tensor.data.size();
    header.push_back(
        {tensor.name, {{"dtype", info(tensor.dtype).name}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}}});
    offset = end;
  }
  std::string text = header.dump();
  while ((sizeof(std::uint64_t) + text.size()) % kAlignment != 0) text += ' ';
  return text;
}

class OutputFile {
 public:
  explicit OutputFile(fs::path path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (fd_ >= 0) ::close(fd_);
    if (fd_ >= 0 && !renamed_) ::unlink(path_.c_str());
  }

  Status write(std::span<const std::byte> bytes) {
    if (fd_ < 0) return failed("be created");
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), 1u << 30));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return failed("be written");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }

  Status rename_to(const fs::path& target) {
    if (::fsync(fd_) != 0) return failed("be written");
    if (::rename(path_.c_str(), target.c_str()) != 0) return failed("be renamed");
    renamed_ = true;
    return {};
  }

 private:
  Status failed(const char* what) const {
    return Status::error("{}: cannot {} ({}); check the folder and the free space", path_.string(), what,
                         std::strerror(errno));
  }

  fs::path path_;
  int fd_;
  bool renamed_ = false;
};

}  // namespace

Status write_safetensors(const fs::path& path, std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata) {
  const auto header = make_header(tensors, metadata, path.string());
  if (!header) return header.status();
  OutputFile file(path.string() + ".partial");
  const std::uint64_t length = header->size();
  if (auto status = file.write(std::as_bytes(std::span(&length, 1))); !status) return status;
  if (auto status = file.write(std::as_bytes(std::span(*header))); !status) return status;
  for (const TensorView& tensor : tensors) {
    if (auto status = file.write(tensor.data); !status) return status;
  }
  return file.rename_to(path);
}

}  // namespace steadfast
