// Storage on anonymous mappings: pages come zeroed and only when touched.
#include "tensor/storage.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace steadfast {

Result<Storage> Storage::allocate(std::size_t bytes) {
  Storage storage;
  if (bytes == 0) return storage;
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return Status::error("cannot allocate {} MiB of memory ({}); use a smaller --context or fewer streams", bytes >> 20,
                         std::strerror(errno));
  if (bytes >= kHuge) ::madvise(memory, bytes, MADV_HUGEPAGE);  // advice only: its failure changes nothing but speed
  storage.data_ = static_cast<std::byte*>(memory);
  storage.bytes_ = bytes;
  return storage;
}

Storage::~Storage() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace steadfast
