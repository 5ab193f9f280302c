// Multiply and fold: two 64-bit words to one.
#include "backend/fake/history.h"

namespace steadfast::fake {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 32) ^ b) * 0xff51afd7ed558ccdu;
  x = (x ^ (x >> 29)) * 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 32);
}

std::uint64_t chain(std::uint64_t before, TokenId token, int position) {
  return mix(before, static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)) << 32 |
                         static_cast<std::uint32_t>(position));
}

std::uint64_t after_layer(std::uint64_t hash, std::uint64_t chain_here, int layer) {
  return mix(hash ^ chain_here, static_cast<std::uint64_t>(layer));
}

void fill_logits(std::uint64_t hash, std::span<float> logits) {
  for (std::size_t id = 0; id < logits.size(); ++id)
    logits[id] = static_cast<float>(mix(hash, id) >> 40) * 0x1p-22f;  // 24 bits: 0 to 4
}

void logits_behind(std::uint64_t here, int layers, std::span<float> logits) {
  std::uint64_t hash = 0;
  for (int layer = 0; layer < layers; ++layer) hash = after_layer(hash, here, layer);
  fill_logits(hash, logits);
}

}  // namespace steadfast::fake
