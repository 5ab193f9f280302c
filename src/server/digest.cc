// OpenSSL's EVP digest, random generator and constant-time comparison.
#include "server/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <vector>

#include "base/check.h"

namespace steadfast {

Sha256 sha256(std::string_view bytes) {
  Sha256 digest{};
  unsigned length = 0;
  const int done = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr);
  CHECK(done == 1 && length == digest.size(), "SHA-256 failed over {} bytes", bytes.size());
  return digest;
}

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256_of_ids(std::span<const TokenId> ids) {
  std::string bytes;
  bytes.reserve(ids.size() * 4);
  for (const TokenId id : ids) {
    const auto value = static_cast<std::uint32_t>(id);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((value >> shift) & 0xFF);
  }
  return hex(sha256(bytes));
}

bool equal_in_constant_time(const Sha256& a, const Sha256& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_hex(std::size_t bytes) {
  std::vector<std::uint8_t> random(bytes);
  const int done = RAND_bytes(random.data(), static_cast<int>(random.size()));
  CHECK(done == 1, "no random bytes from the system ({} wanted)", bytes);
  return hex(random);
}

}  // namespace steadfast
