// SHA-256 of bytes and of token ids, comparison in constant time, and random identifiers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace steadfast {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
std::string hex(std::span<const std::uint8_t> bytes);

// The ids as little-endian 32-bit integers, one after the other: what a receipt's ids_sha256 is taken of.
std::string sha256_of_ids(std::span<const TokenId> ids);

// Takes the same time wherever the first difference lies.
bool equal_in_constant_time(const Sha256& a, const Sha256& b);

// `bytes` random bytes in hexadecimal.
std::string random_hex(std::size_t bytes);

}  // namespace steadfast
