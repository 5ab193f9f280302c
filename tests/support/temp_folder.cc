// Temporary folders through mkdtemp.
#include "support/temp_folder.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/check.h"

namespace steadfast::test {
namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string name = (fs::temp_directory_path() / "steadfast-test-XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr, "no temporary folder {}", name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

fs::path TempFolder::write(const fs::path& name, std::span<const std::byte> bytes) const {
  const fs::path path = path_ / name;
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  CHECK(file.good(), "cannot write {}", path.string());
  return path;
}

fs::path TempFolder::write(const fs::path& name, std::string_view text) const {
  return write(name, std::as_bytes(std::span(text.data(), text.size())));
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good(), "cannot read {}", path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace steadfast::test
