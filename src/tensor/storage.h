// Storage: a block of memory of one owner, zeroed, aligned to a page; large blocks ask for huge pages.
#pragma once

#include <cstddef>
#include <utility>

#include "base/status.h"

namespace steadfast {

class Storage {
 public:
  Storage() = default;
  static Result<Storage> allocate(std::size_t bytes);
  Storage(Storage&& other) noexcept { swap(other); }
  Storage& operator=(Storage&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Storage();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(Storage& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace steadfast
