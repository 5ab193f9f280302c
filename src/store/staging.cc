// Staging folders: flock against a second pull, fsync and rename for the install.
#include "store/staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace steadfast {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSourceFile = ".source";

Status failed(const fs::path& path, const char* what, const std::string& why) {
  return Status::error("{}: cannot be {} ({}); check the permissions and the free space", path.string(), what, why);
}

std::string read_source(const fs::path& folder) {
  std::ifstream file(folder / kSourceFile, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Status prepare(const fs::path& folder, const std::string& source) {
  std::error_code error;
  if (read_source(folder) != source) fs::remove_all(folder, error);
  if (error) return failed(folder, "removed", error.message());
  fs::create_directories(folder, error);
  if (error) return failed(folder, "created", error.message());
  std::ofstream file(folder / kSourceFile, std::ios::binary);
  file << source;
  file.close();
  return file.good() ? Status::ok() : failed(folder / kSourceFile, "written", "no space, or no permission");
}

Status flush(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool good = fd >= 0 && ::fsync(fd) == 0;
  const int code = errno;
  if (fd >= 0) ::close(fd);
  return good ? Status::ok() : failed(path, "written", std::strerror(code));
}

}  // namespace

Staging::Staging(fs::path folder, fs::path target, int lock)
    : folder_(std::move(folder)), target_(std::move(target)), lock_(lock) {}

Staging::Staging(Staging&& other) noexcept
    : folder_(std::move(other.folder_)), target_(std::move(other.target_)), lock_(std::exchange(other.lock_, -1)) {}

Staging::~Staging() {
  if (lock_ >= 0) ::close(lock_);
}

Result<Staging> Staging::open(const Store& store, const std::string& name, const std::string& source) {
  const fs::path partial = store.root() / ".partial";
  std::error_code error;
  fs::create_directories(partial, error);
  if (error) return failed(partial, "created", error.message());
  std::string flat = name;
  std::replace(flat.begin(), flat.end(), '/', '@');  // no name holds this character
  const fs::path lock_path = partial / (flat + ".lock");
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0) return failed(lock_path, "created", std::strerror(errno));
  Staging staging(partial / flat, store.folder(name), lock);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return Status::error("another pull of '{}' is running; wait for it", name);
  }
  if (auto status = prepare(staging.folder_, source); !status) return status;
  return staging;
}

Status Staging::need_space(std::uint64_t bytes) const {
  std::error_code error;
  const auto space = fs::space(folder_, error);
  if (error || space.available >= bytes) return {};
  return Status::error("{} has {} MB free, and the model needs {} MB; make room, or set STEADFAST_HOME to another disk",
                       folder_.string(), space.available / 1'000'000, bytes / 1'000'000 + 1);
}

Status Staging::install(const ModelRecord& record) const {
  std::error_code error;
  fs::remove(folder_ / kSourceFile, error);
  if (auto status = write_record(folder_, record); !status) return status;
  for (const FileRecord& file : record.files) {
    if (auto status = flush(folder_ / file.name); !status) return status;
  }
  fs::create_directories(target_.parent_path(), error);
  if (error) return failed(target_.parent_path(), "created", error.message());
  if (fs::exists(target_, error)) {
    // The old model stays whole until the new one has its name; then it lies in the staging folder and goes.
    if (::renameat2(AT_FDCWD, folder_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
      return failed(target_, "replaced", std::strerror(errno));
    }
    remove();
    return {};
  }
  fs::rename(folder_, target_, error);
  return error ? failed(target_, "created", error.message()) : Status::ok();
}

void Staging::remove() const {
  std::error_code error;
  fs::remove_all(folder_, error);
}

}  // namespace steadfast
