// Device memory of a problem, poisoned (every byte 0xFF: NaN in every float type) and between canaries, and float32
// rows in it with a gap behind each that no kernel may write. What the device fails in is thrown as DeviceError, which
// the contract's border (contract.cc) turns into a Status.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "backend/backend.h"

namespace steadfast::contract {

class DeviceError : public std::runtime_error {
 public:
  explicit DeviceError(const Status& status) : std::runtime_error(status.message()) {}
};
inline void need(const Status& status) {
  if (!status) throw DeviceError(status);
}
template <typename T>
T need(Result<T> result) {
  need(result.status());
  return std::move(*result);
}

// Sends what ops left to do and waits for it; memory: of this backend.
void settle(Backend& backend, const void* memory);

class Buffer {
 public:
  // fill: every byte to begin with, and after reset().
  Buffer(Backend& backend, std::size_t bytes, std::uint8_t fill = 0xFF);
  std::byte* data() const { return static_cast<std::byte*>(memory_->data()) + kGuard; }
  float* floats() const { return reinterpret_cast<float*>(data()); }
  std::size_t bytes() const { return bytes_; }
  void upload(const void* from, std::size_t bytes, std::size_t at = 0);
  void upload(const std::vector<float>& from) { upload(from.data(), from.size() * sizeof(float)); }
  void download(void* to, std::size_t bytes, std::size_t at = 0) const;
  std::vector<std::byte> download() const;
  void reset(std::size_t bytes);  // the first `bytes`
  bool intact() const;            // the canaries on both sides

 private:
  static constexpr std::size_t kGuard = 1024;
  static constexpr std::uint8_t kCanary = 0xA5;
  Backend* backend_;
  std::size_t bytes_;
  std::uint8_t fill_;
  std::unique_ptr<DeviceMemory> memory_, pristine_;
};

// Rows of an op's output. One row before them and one behind belong to nobody.
class OutputRows {
 public:
  OutputRows(Backend& backend, int rows, int width, int gap = 16);
  int width() const { return width_; }
  Matrix matrix(int first, int rows) const;
  Matrix matrix(int rows) const { return matrix(0, rows); }
  // Poisons everything that a call with `rows` rows may touch.
  void poison(int rows);
  // Values that the call adds to, before it: [rows][width].
  void fill(const std::vector<float>& values, int rows);
  // [rows][width]; damage: something outside these rows was written.
  std::vector<float> take(int rows, bool& damage) const;

 private:
  std::size_t stride() const { return static_cast<std::size_t>(stride_); }
  int rows_, width_, stride_;
  Buffer buffer_;
};

// Rows that an op reads: [rows][width] side by side.
class InputRows {
 public:
  InputRows(Backend& backend, std::vector<float> values, int width);
  Matrix matrix(int first, int rows) const;
  int rows() const { return rows_; }
  const float* host(int row) const { return host_.data() + static_cast<std::ptrdiff_t>(row) * width_; }
  const std::vector<float>& host() const { return host_; }
  void change(const std::vector<float>& values) { buffer_.upload(values); }  // the device's copy alone
  void mend() { buffer_.upload(host_); }
  bool intact() const { return buffer_.intact(); }

 private:
  std::vector<float> host_;
  int rows_, width_;
  Buffer buffer_;
};

// A vector of floats on the device (a norm's weight, a bias).
class DeviceVector {
 public:
  DeviceVector(Backend& backend, std::vector<float> values)
      : host(std::move(values)), buffer_(backend, host.size() * sizeof(float)) {
    buffer_.upload(host);
  }
  const float* device() const { return buffer_.floats(); }
  std::vector<float> host;

 private:
  Buffer buffer_;
};

}  // namespace steadfast::contract
