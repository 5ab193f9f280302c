// Poison is laid by a copy on the device where it is large, so that a check of many calls moves little over the bus.
#include "contract/device_rows.h"

#include <algorithm>
#include <cstring>

namespace steadfast::contract {

void settle(Backend& backend, const void* memory) {
  std::byte one{};
  need(backend.finish());
  need(backend.download(&one, memory, 1));
}

Buffer::Buffer(Backend& backend, std::size_t bytes, std::uint8_t fill)
    : backend_(&backend), bytes_((bytes + 255) / 256 * 256), fill_(fill) {
  memory_ = need(backend.allocate(bytes_ + 2 * kGuard));
  const std::vector<std::uint8_t> guard(kGuard, kCanary);
  auto* base = static_cast<std::byte*>(memory_->data());
  need(backend.upload(base, guard.data(), kGuard));
  need(backend.upload(base + kGuard + bytes_, guard.data(), kGuard));
  reset(bytes_);
}

void Buffer::upload(const void* from, std::size_t bytes, std::size_t at) {
  CHECK(at + bytes <= bytes_, "upload of {} bytes at {} of {}", bytes, at, bytes_);
  if (bytes > 0) need(backend_->upload(data() + at, from, bytes));
}

void Buffer::download(void* to, std::size_t bytes, std::size_t at) const {
  CHECK(at + bytes <= bytes_, "download of {} bytes at {} of {}", bytes, at, bytes_);
  if (bytes > 0) need(backend_->download(to, data() + at, bytes));
}

std::vector<std::byte> Buffer::download() const {
  std::vector<std::byte> all(bytes_);
  download(all.data(), bytes_);
  return all;
}

void Buffer::reset(std::size_t bytes) {
  bytes = std::min(bytes, bytes_);
  if (bytes == 0) return;
  if (fill_ == 0) {
    need(backend_->clear(data(), bytes));
    return settle(*backend_, data());
  }
  if (pristine_ == nullptr) {
    pristine_ = need(backend_->allocate(bytes_));
    const std::vector<std::uint8_t> fill(bytes_, fill_);
    need(backend_->upload(pristine_->data(), fill.data(), bytes_));
  }
  need(backend_->copy(data(), pristine_->data(), bytes));
  settle(*backend_, data());  // the op may come from another backend, in another order of things
}

bool Buffer::intact() const {
  std::vector<std::uint8_t> guard(2 * kGuard);
  const auto* base = static_cast<const std::byte*>(memory_->data());
  need(backend_->download(guard.data(), base, kGuard));
  need(backend_->download(guard.data() + kGuard, base + kGuard + bytes_, kGuard));
  return std::all_of(guard.begin(), guard.end(), [](std::uint8_t byte) { return byte == kCanary; });
}

OutputRows::OutputRows(Backend& backend, int rows, int width, int gap)
    : rows_(rows),
      width_(width),
      stride_(width + gap),
      buffer_(backend, static_cast<std::size_t>(rows + 2) * static_cast<std::size_t>(width + gap) * sizeof(float)) {}

Matrix OutputRows::matrix(int first, int rows) const {
  CHECK(first + rows <= rows_, "rows {} to {} of {}", first, first + rows, rows_);
  return {buffer_.floats() + static_cast<std::ptrdiff_t>(first + 1) * stride_, rows, width_, stride_};
}

void OutputRows::poison(int rows) { buffer_.reset(static_cast<std::size_t>(rows + 2) * stride() * sizeof(float)); }

void OutputRows::fill(const std::vector<float>& values, int rows) {
  poison(rows);
  std::vector<std::uint32_t> all(static_cast<std::size_t>(rows + 2) * stride(), 0xFFFFFFFFu);
  const auto width = static_cast<std::size_t>(width_);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
    std::memcpy(&all[(row + 1) * stride()], &values[row * width], width * sizeof(float));
  buffer_.upload(all.data(), all.size() * sizeof(float));
}

std::vector<float> OutputRows::take(int rows, bool& damage) const {
  const auto width = static_cast<std::size_t>(width_), count = static_cast<std::size_t>(rows);
  std::vector<std::uint32_t> all((count + 2) * stride());
  buffer_.download(all.data(), all.size() * sizeof(float));
  std::vector<float> values(count * width);
  const auto untouched = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      if (all[i] != 0xFFFFFFFFu) return false;
    return true;
  };
  if (!untouched(0, stride()) || !untouched((count + 1) * stride(), all.size()) || !buffer_.intact()) damage = true;
  for (std::size_t row = 0; row < count; ++row) {
    const std::size_t at = (row + 1) * stride();
    std::memcpy(&values[row * width], &all[at], width * sizeof(float));
    if (!untouched(at + width, at + stride())) damage = true;
  }
  return values;
}

InputRows::InputRows(Backend& backend, std::vector<float> values, int width)
    : host_(std::move(values)),
      rows_(static_cast<int>(host_.size() / static_cast<std::size_t>(width))),
      width_(width),
      buffer_(backend, host_.size() * sizeof(float)) {
  buffer_.upload(host_);
}

Matrix InputRows::matrix(int first, int rows) const {
  CHECK(first + rows <= rows_, "rows {} to {} of {}", first, first + rows, rows_);
  return {buffer_.floats() + static_cast<std::ptrdiff_t>(first) * width_, rows, width_};
}

}  // namespace steadfast::contract
