// Mapping of whole files through mmap; the file descriptor is closed at once.
#include "formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace steadfast {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Status open_error(const std::filesystem::path& path, int code) {
  if (code == ENOENT) return Status::error("{}: there is no such file; check the path", path.string());
  if (code == EACCES)
    return Status::error("{}: reading is not permitted; change the file's permissions", path.string());
  if (code == ELOOP) return Status::error("{}: its symbolic links form a loop; fetch the file again", path.string());
  return Status::error("{}: cannot be opened ({}); check the path", path.string(), std::strerror(code));
}

bool inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  const auto begin = reinterpret_cast<std::uintptr_t>(whole.data());
  const auto at = reinterpret_cast<std::uintptr_t>(part.data());
  return at >= begin && at - begin <= whole.size() && part.size() <= whole.size() - (at - begin);
}

std::uintptr_t page_size() {
  static const auto kSize = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return kSize;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK a pipe of that name would block here for ever.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return open_error(path, errno);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return open_error(path, errno);
  if (S_ISDIR(about.st_mode))
    return Status::error("{}: is a folder where a file is needed; name the file", path.string());
  if (!S_ISREG(about.st_mode))
    return Status::error("{}: is not a regular file; copy the model to a file", path.string());
  if (about.st_size <= 0) return Status::error("{}: the file is empty; fetch it again", path.string());
  const auto size = static_cast<std::size_t>(about.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) {
    return Status::error("{}: cannot be mapped into memory ({}); raise the limits on memory maps", path.string(),
                         std::strerror(errno));
  }
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty()) return;
  CHECK(inside(part, bytes_), "{} bytes outside the map are released", part.size());
  const auto at = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t begin = (at + page_size() - 1) / page_size() * page_size();
  const std::uintptr_t end = (at + part.size()) / page_size() * page_size();
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void MappedFile::will_need(std::span<const std::byte> part) const {
  if (part.empty()) return;
  CHECK(inside(part, bytes_), "{} bytes outside the map are announced", part.size());
  const auto at = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t begin = at / page_size() * page_size();
  ::madvise(reinterpret_cast<void*>(begin), at + part.size() - begin, MADV_WILLNEED);
}

}  // namespace steadfast
