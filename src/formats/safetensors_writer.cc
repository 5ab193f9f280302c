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
  if (!checked_bytes(tensor.dtype, tensor.shape)) {
    return Status::error("{}: tensor {} cannot have the shape {}; correct it", file, shown(tensor.name),
                         shape_text(tensor.shape));
  }
  return {};
}

Status check_data(const TensorView& tensor, const std::string& file) {
  const auto bytes = checked_bytes(tensor.dtype, tensor.shape);
  if (!bytes || *bytes != tensor.data.size()) {
    return Status::error("{}: tensor {} of shape {} has {} bytes of data, which do not fit it; correct the tensor",
                         file, shown(tensor.name), shape_text(tensor.shape), tensor.data.size());
  }
  return {};
}

struct Header {
  std::string text;
  std::uint64_t data_bytes = 0;
};

Result<Header> make_header(std::span<const TensorView> tensors, const std::map<std::string, std::string>& metadata,
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
    const std::uint64_t end = offset + *checked_bytes(tensor.dtype, tensor.shape);
    header.push_back(
        {tensor.name, {{"dtype", info(tensor.dtype).name}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}}});
    offset = end;
  }
  std::string text = header.dump();
  while ((sizeof(std::uint64_t) + text.size()) % kAlignment != 0) text += ' ';
  return Header{std::move(text), offset};
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

struct SafetensorsWriter::Impl {
  Impl(const fs::path& target_path, std::uint64_t data_bytes)
      : target(target_path), file(target_path.string() + ".partial"), left(data_bytes) {}
  fs::path target;
  OutputFile file;
  std::uint64_t left;  // bytes of data that are still to come
};

SafetensorsWriter::SafetensorsWriter() = default;
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter> SafetensorsWriter::create(const fs::path& path, std::span<const TensorView> tensors,
                                                    const std::map<std::string, std::string>& metadata) {
  const auto header = make_header(tensors, metadata, path.string());
  if (!header) return header.status();
  SafetensorsWriter writer;
  writer.impl_ = std::make_unique<Impl>(path, header->data_bytes);
  const std::uint64_t length = header->text.size();
  if (auto status = writer.impl_->file.write(std::as_bytes(std::span(&length, 1))); !status) return status;
  if (auto status = writer.impl_->file.write(std::as_bytes(std::span(header->text))); !status) return status;
  return writer;
}

Status SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > impl_->left) {
    return Status::error("{}: {} bytes of data are more than its tensors have; correct the tensors",
                         impl_->target.string(), bytes.size() - impl_->left);
  }
  impl_->left -= bytes.size();
  return impl_->file.write(bytes);
}

Status SafetensorsWriter::finish() {
  if (impl_->left != 0) {
    return Status::error("{}: {} bytes of its tensors' data are missing; write them all", impl_->target.string(),
                         impl_->left);
  }
  return impl_->file.rename_to(impl_->target);
}

Status write_safetensors(const fs::path& path, std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata) {
  for (const TensorView& tensor : tensors) {
    if (info(tensor.dtype).block_elements != 1) continue;  // create() says what is wrong with it
    if (auto status = check_data(tensor, path.string()); !status) return status;
  }
  auto writer = SafetensorsWriter::create(path, tensors, metadata);
  if (!writer) return writer.status();
  for (const TensorView& tensor : tensors) {
    if (auto status = writer->write(tensor.data); !status) return status;
  }
  return writer->finish();
}

}  // namespace steadfast
