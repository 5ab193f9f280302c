// Packing and its inverse for one row (embeddings). Layout: kernels.h and linear_impl.h.
#include "backend/cpu/packed.h"

#include <atomic>
#include <cmath>
#include <cstring>

namespace steadfast::cpu {
namespace {

constexpr std::size_t kAlign = 64;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
std::size_t chunk_bytes(int bits) { return static_cast<std::size_t>(kLanes) * kChunk * bits / 8; }

ScaleType scale_type(DType dtype) {
  if (dtype == DType::kF16) return ScaleType::kF16;
  return dtype == DType::kBF16 ? ScaleType::kBF16 : ScaleType::kF32;
}

std::size_t scale_bytes(ScaleType type) { return type == ScaleType::kF32 ? 4 : 2; }

void put_scale(ScaleType type, void* base, std::size_t index, float value) {
  if (type == ScaleType::kF32) {
    static_cast<float*>(base)[index] = value;
  } else {
    static_cast<std::uint16_t*>(base)[index] = type == ScaleType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
  }
}

float get_scale(ScaleType type, const void* base, std::size_t index) {
  if (type == ScaleType::kF32) return static_cast<const float*>(base)[index];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(base)[index];
  return type == ScaleType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

// Calls fn(word offset within the chunk, shift in each byte, shift in the code, mask of a byte) for each plane that
// holds a part of the codes of (lane, vector): four consecutive k in one 32-bit word. The first plane holds the lowest
// bits.
template <typename Fn>
void for_planes(int bits, int lane, int vector, Fn fn) {
  if (bits == 8) return fn(16 * vector + lane, 0, 0, 0xFFu);
  int plane = 0, low = 0;
  for (const int width : {4, 2, 1}) {
    if ((bits & width) == 0) continue;
    const int per_byte = 8 / width;
    fn(plane + 16 * (vector / per_byte) + lane, vector % per_byte * width, low, (1u << width) - 1);
    plane += 16 * width;
    low += width;
  }
}

constexpr std::uint32_t kEveryByte = 0x01010101u;

void put_chunk(std::uint8_t* chunk, int bits, int lane, const std::uint8_t* codes) {
  for (int vector = 0; vector < kChunk / 4; ++vector) {
    std::uint32_t four;
    std::memcpy(&four, codes + 4 * vector, 4);
    for_planes(bits, lane, vector, [&](int word, int shift, int low, std::uint32_t mask) {
      std::uint32_t packed;
      std::memcpy(&packed, chunk + 4 * word, 4);
      packed |= ((four >> low) & (mask * kEveryByte)) << shift;
      std::memcpy(chunk + 4 * word, &packed, 4);
    });
  }
}

unsigned get_code(const std::uint8_t* chunk, int bits, int lane, int k) {
  unsigned code = 0;
  for_planes(bits, lane, k / 4, [&](int word, int shift, int low, std::uint32_t mask) {
    code |= ((static_cast<unsigned>(chunk[4 * word + k % 4]) >> shift) & mask) << low;
  });
  return code;
}

}  // namespace

Result<std::unique_ptr<Weight>> PackedWeight::from(const AffineReader& reader, std::span<const int> row_map,
                                                   ThreadTeam& team) {
  const int in = reader.in(), out = row_map.empty() ? reader.out() : static_cast<int>(row_map.size()),
            bits = reader.bits(), group = reader.group(), groups = reader.groups();
  auto packed = std::make_unique<PackedWeight>();
  packed->out_ = out;
  packed->in_ = in;
  const int tiles = packed->tiles();
  const ScaleType type = scale_type(reader.scale_dtype());
  const std::size_t tile_bytes = chunk_bytes(bits) * static_cast<std::size_t>(in / kChunk);
  const std::size_t code_bytes = aligned(tile_bytes * static_cast<std::size_t>(tiles));
  const std::size_t side_bytes = aligned(static_cast<std::size_t>(tiles) * groups * kLanes * scale_bytes(type));

  // Biases first in a pass of their own: a symmetric weight stores none.
  std::atomic<bool> symmetric{true};
  const float zero = static_cast<float>(1 << (bits - 1));
  const auto source_row = [&](int feature) {
    return row_map.empty() ? feature : row_map[static_cast<std::size_t>(feature)];
  };
  team.run(tiles, [&](int tile, int) {
    if (!symmetric.load(std::memory_order_relaxed)) return;
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(in));
    std::vector<float> scales(static_cast<std::size_t>(groups)), biases(scales.size());
    for (int lane = 0; lane < kLanes && tile * kLanes + lane < out; ++lane) {
      reader.read(source_row(tile * kLanes + lane), codes.data(), scales.data(), biases.data());
      for (std::size_t g = 0; g < scales.size(); ++g)
        if (biases[g] != -zero * scales[g]) return symmetric.store(false, std::memory_order_relaxed);
    }
  });
  auto storage = Storage::allocate(code_bytes + side_bytes * (symmetric ? 1 : 2));
  if (!storage) return storage.status();
  packed->storage_ = std::move(*storage);
  auto* code_base = reinterpret_cast<std::uint8_t*>(packed->storage_.data());
  void* scale_base = packed->storage_.data() + code_bytes;
  void* bias_base = symmetric ? nullptr : packed->storage_.data() + code_bytes + side_bytes;
  team.run(tiles, [&](int tile, int) {
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(in));
    std::vector<float> scales(static_cast<std::size_t>(groups)), biases(scales.size());
    for (int lane = 0; lane < kLanes && tile * kLanes + lane < out; ++lane) {
      reader.read(source_row(tile * kLanes + lane), codes.data(), scales.data(), biases.data());
      std::uint8_t* tile_codes = code_base + static_cast<std::size_t>(tile) * tile_bytes;
      for (int chunk = 0; chunk < in / kChunk; ++chunk)
        put_chunk(tile_codes + static_cast<std::size_t>(chunk) * chunk_bytes(bits), bits, lane,
                  codes.data() + chunk * kChunk);
      for (int g = 0; g < groups; ++g) {
        const std::size_t at = (static_cast<std::size_t>(tile) * groups + g) * kLanes + lane;
        put_scale(type, scale_base, at, scales[static_cast<std::size_t>(g)]);
        if (bias_base != nullptr) put_scale(type, bias_base, at, biases[static_cast<std::size_t>(g)]);
      }
    }
  });
  packed->affine_ = {out, in, bits, group, symmetric.load(), type, code_base, scale_base, bias_base};
  packed->bytes_ = packed->storage_.bytes();
  packed->format_ = fmt::format("affine {} bits, groups of {}, {} scales{}", bits, group,
                                info(reader.scale_dtype()).name, symmetric ? ", symmetric" : "");
  return std::unique_ptr<Weight>(std::move(packed));
}

Result<std::unique_ptr<Weight>> PackedWeight::from(const DenseReader& reader, std::span<const int> row_map,
                                                   ThreadTeam& team) {
  const int in = reader.in(), out = row_map.empty() ? reader.out() : static_cast<int>(row_map.size());
  auto packed = std::make_unique<PackedWeight>();
  packed->out_ = out;
  packed->in_ = in;
  const ScaleType type = scale_type(reader.dtype());
  auto storage = Storage::allocate(static_cast<std::size_t>(packed->tiles()) * in * kLanes * scale_bytes(type));
  if (!storage) return storage.status();
  packed->storage_ = std::move(*storage);
  void* base = packed->storage_.data();
  team.run(packed->tiles(), [&](int tile, int) {
    std::vector<float> row(static_cast<std::size_t>(in));
    for (int lane = 0; lane < kLanes && tile * kLanes + lane < out; ++lane) {
      const int feature = tile * kLanes + lane;
      reader.read(row_map.empty() ? feature : row_map[static_cast<std::size_t>(feature)], row.data());
      for (int k = 0; k < in; ++k)
        put_scale(type, base, (static_cast<std::size_t>(tile) * in + k) * kLanes + lane,
                  row[static_cast<std::size_t>(k)]);
    }
  });
  packed->dense_ = {out, in, type, base};
  packed->bytes_ = packed->storage_.bytes();
  packed->format_ = fmt::format("unquantised {}, float32 arithmetic", info(reader.dtype()).name);
  return std::unique_ptr<Weight>(std::move(packed));
}

void PackedWeight::expand(int row, float* out) const {
  const int tile = row / kLanes, lane = row % kLanes;
  if (!is_affine()) {
    for (int k = 0; k < in_; ++k)
      out[k] = get_scale(dense_.type, dense_.values, (static_cast<std::size_t>(tile) * in_ + k) * kLanes + lane);
    return;
  }
  const AffineWeight& w = affine_;
  const int groups = in_ / w.group;
  const std::uint8_t* codes =
      w.codes + static_cast<std::size_t>(tile) * chunk_bytes(w.bits) * static_cast<std::size_t>(in_ / kChunk);
  for (int k = 0; k < in_; ++k) {
    const std::size_t at = (static_cast<std::size_t>(tile) * groups + k / w.group) * kLanes + lane;
    const float scale = get_scale(w.scale_type, w.scales, at);
    const float bias =
        w.symmetric ? scale * -static_cast<float>(1 << (w.bits - 1)) : get_scale(w.scale_type, w.biases, at);
    const unsigned code =
        get_code(codes + static_cast<std::size_t>(k / kChunk) * chunk_bytes(w.bits), w.bits, lane, k % kChunk);
    out[k] = std::fma(static_cast<float>(code), scale, bias);
  }
}

}  // namespace steadfast::cpu
