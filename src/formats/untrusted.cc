// Checks of names and sizes that come from files.
#include "formats/untrusted.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utf8proc.h>

#include <algorithm>

namespace steadfast {
namespace {

// Bytes of the code point at the front; 0: not UTF-8.
std::size_t code_point_bytes(std::string_view bytes) {
  utf8proc_int32_t point = 0;
  const auto length = static_cast<utf8proc_ssize_t>(std::min<std::size_t>(bytes.size(), 4));
  const auto used = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()), length, &point);
  return used > 0 ? static_cast<std::size_t>(used) : 0;
}

bool is_control(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value < 0x20 || value == 0x7F;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    if (static_cast<unsigned char>(bytes.front()) < 0x80) {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t used = code_point_bytes(bytes);
    if (used == 0) return false;
    bytes.remove_prefix(used);
  }
  return true;
}

bool is_clean_name(std::string_view bytes) {
  return !bytes.empty() && std::none_of(bytes.begin(), bytes.end(), is_control) && is_utf8(bytes);
}

std::string shown(std::string_view bytes) {
  constexpr std::size_t kMost = 80;
  std::string text = "'";
  std::string_view rest = bytes.substr(0, kMost);
  while (!rest.empty()) {
    const std::size_t used = is_control(rest.front()) ? 0 : code_point_bytes(rest);
    if (used == 0) text += fmt::format("\\x{:02X}", static_cast<unsigned char>(rest.front()));
    text += rest.substr(0, used);
    rest.remove_prefix(std::max<std::size_t>(used, 1));
  }
  return text + (bytes.size() > kMost ? "...'" : "'");
}

std::optional<std::uint64_t> checked_bytes(DType dtype, std::span<const std::int64_t> shape) {
  const DTypeInfo& type = info(dtype);
  const auto block_elements = static_cast<std::int64_t>(type.block_elements);
  const std::int64_t last = shape.empty() ? 1 : shape.back();
  if (last % block_elements != 0) return std::nullopt;
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) return std::nullopt;
  }
  std::int64_t bytes = 0;
  const std::int64_t blocks = elements / block_elements;
  if (__builtin_mul_overflow(blocks, static_cast<std::int64_t>(type.block_bytes), &bytes)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace steadfast
