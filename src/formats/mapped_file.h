// A file mapped for reading: the bytes live as long as this object; moving it keeps their address.
// The size is the one at opening. A file that another program shortens while it is mapped ends this program with SIGBUS
// at the next access, as with any mapping: replace a model by renaming a new file over it, as `pull` does.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/status.h"

namespace steadfast {

class MappedFile {
 public:
  // Regular files only (symbolic links are followed), not empty. Reads nothing.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  // Gives the whole pages inside `part` back to the system. Reading them again stays legal and reads the file again.
  void release(std::span<const std::byte> part) const;
  // `part` is read soon: the system starts reading it. A hint, which may do nothing.
  void will_need(std::span<const std::byte> part) const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace steadfast
