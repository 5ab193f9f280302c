// Helpers for data that nobody vouches for: sizes without overflow, names that are fit to be used and to be printed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace steadfast {

bool is_utf8(std::string_view bytes);

// A name of a key or a tensor: not empty, UTF-8, no control characters.
bool is_clean_name(std::string_view bytes);

// For messages: quoted, control characters and bytes that are not UTF-8 as \xNN, cut after 80 bytes.
std::string shown(std::string_view bytes);

// The bytes of a tensor; nothing where the product overflows, an extent is negative, or the last extent is not whole
// blocks. Extents are multiplied in order, so that TensorView::elements() of an accepted shape never overflows either.
std::optional<std::uint64_t> checked_bytes(DType dtype, std::span<const std::int64_t> shape);

// "[2, 3]"
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace steadfast
