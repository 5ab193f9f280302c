// A fresh folder that is removed with everything in it when the object goes.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace steadfast::test {

class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::filesystem::path& path() const { return path_; }
  // Writes a file of that name (folders in it are made); returns its path.
  std::filesystem::path write(const std::filesystem::path& name, std::span<const std::byte> bytes) const;
  std::filesystem::path write(const std::filesystem::path& name, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& path);

}  // namespace steadfast::test
