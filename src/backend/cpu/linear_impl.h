// Linear kernels over one instruction set S of simd.h. A lane is an output feature and holds its own sum, so a row's
// bits depend neither on the rows beside it nor on how tiles are shared out among threads.
// int8: for each group ascending: exact int32 dot (two digits: 256 * high dot + low dot); acc = fma(float(dot), scale *
// row_scale, acc);
//       then, unless symmetric, acc = fma(bias, row_scale * float(sum of codes), acc).
// f32:  acc = fma(fma(code, scale, bias), x[k], acc) for k ascending.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd.h"

namespace steadfast::cpu {
namespace {

constexpr std::size_t chunk_bytes(int bits) { return static_cast<std::size_t>(kLanes) * kChunk * bits / 8; }

template <typename S>
inline typename S::F load_scale(ScaleType type, const void* base, std::size_t index) {
  switch (type) {
    case ScaleType::kF16:
      return S::load_f16(static_cast<const std::uint16_t*>(base) + index);
    case ScaleType::kBF16:
      return S::load_bf16(static_cast<const std::uint16_t*>(base) + index);
    case ScaleType::kF32:
      break;
  }
  return S::load(static_cast<const float*>(base) + index);
}

// A chunk's codes as bytes: w[s] holds k = 4s .. 4s+3 of each lane. Planes of 8, 4, 2 and 1 bits follow each other.
template <typename S, int kBits>
inline void unpack(const std::uint8_t* p, typename S::B* w) {
  if constexpr (kBits == 8) {
    for (int s = 0; s < 8; ++s) w[s] = S::load_bytes(p + 64 * s);
  } else {
    if constexpr (kBits >= 4) {
      for (int s = 0; s < 4; ++s) {
        const auto raw = S::load_bytes(p + 64 * s);
        w[2 * s] = S::template field<0>(raw, 15);
        w[2 * s + 1] = S::template field<4>(raw, 15);
      }
    }
    constexpr int kBase = kBits & 4;
    if constexpr ((kBits & 2) != 0) {
      for (int s = 0; s < 2; ++s) {
        const auto raw = S::load_bytes(p + 64 * kBase + 64 * s);
        const typename S::B two[4] = {S::template field<0>(raw, 3), S::template field<2>(raw, 3),
                                      S::template field<4>(raw, 3), S::template field<6>(raw, 3)};
        for (int i = 0; i < 4; ++i) w[4 * s + i] = kBase != 0 ? S::template merge<4>(w[4 * s + i], two[i]) : two[i];
      }
    }
    if constexpr ((kBits & 1) != 0) {
      const auto raw = S::load_bytes(p + 64 * (kBits & 6));
      const typename S::B one[8] = {S::template field<0>(raw, 1), S::template field<1>(raw, 1),
                                    S::template field<2>(raw, 1), S::template field<3>(raw, 1),
                                    S::template field<4>(raw, 1), S::template field<5>(raw, 1),
                                    S::template field<6>(raw, 1), S::template field<7>(raw, 1)};
      for (int i = 0; i < 8; ++i) w[i] = S::template merge<(kBits & 6)>(w[i], one[i]);
    }
  }
}

// Adds bias and residual, stores the features that exist.
template <typename S>
inline void finish(const LinearOutput& out, int out_features, int tile, int row, typename S::F acc) {
  const int feature = tile * kLanes;
  const int count = out_features - feature < kLanes ? out_features - feature : kLanes;
  float* y = out.y + row * out.stride + feature;
  if (count == kLanes) {
    if (out.bias != nullptr) acc = S::add(acc, S::load(out.bias + feature));
    if (out.add != nullptr) acc = S::add(acc, S::load(out.add + row * out.stride + feature));
    S::store(y, acc);
    return;
  }
  float values[kLanes];
  S::store(values, acc);
  for (int i = 0; i < count; ++i) {
    float value = values[i];
    if (out.bias != nullptr) value = value + out.bias[feature + i];
    if (out.add != nullptr) value = value + out.add[row * out.stride + feature + i];
    y[i] = value;
  }
}

template <typename S, int kBits, bool kFine, int kTiles, int kRows>
inline void int8_block(const AffineWeight& w, const QuantRows& x, const LinearOutput& out, int tile, int row) {
  using F = typename S::F;
  const int groups = w.in / w.group, chunks = w.group / kChunk;
  const std::size_t tile_bytes = chunk_bytes(kBits) * (w.in / kChunk);
  const std::uint8_t* codes = w.codes + tile * tile_bytes;
  const std::int8_t* xs = x.codes + static_cast<std::ptrdiff_t>(row) * w.in;
  const std::int8_t* low = kFine ? x.low + static_cast<std::ptrdiff_t>(row) * w.in : nullptr;
  F acc[kTiles][kRows];
  for (int t = 0; t < kTiles; ++t)
    for (int r = 0; r < kRows; ++r) acc[t][r] = S::zero();
  for (int g = 0; g < groups; ++g) {
    typename S::I dots[kTiles][kRows], low_dots[kTiles][kRows];
    for (int t = 0; t < kTiles; ++t)
      for (int r = 0; r < kRows; ++r) dots[t][r] = low_dots[t][r] = S::izero();
    for (int c = g * chunks; c < (g + 1) * chunks; ++c) {
      for (int t = 0; t < kTiles; ++t) {
        typename S::B bytes[8];
        unpack<S, kBits>(codes + t * tile_bytes + c * chunk_bytes(kBits), bytes);
        for (int s = 0; s < 8; ++s) {
          for (int r = 0; r < kRows; ++r) {
            const std::ptrdiff_t k = static_cast<std::ptrdiff_t>(r) * w.in + c * kChunk + 4 * s;
            dots[t][r] = S::template dot<kBits>(dots[t][r], bytes[s], xs + k);
            if constexpr (kFine) low_dots[t][r] = S::template dot<kBits>(low_dots[t][r], bytes[s], low + k);
          }
        }
      }
    }
    for (int t = 0; t < kTiles; ++t) {
      const std::size_t at = (static_cast<std::size_t>(tile + t) * groups + g) * kLanes;
      const F scale = load_scale<S>(w.scale_type, w.scales, at);
      for (int r = 0; r < kRows; ++r) {
        const std::size_t rg = static_cast<std::size_t>(row + r) * groups + g;
        const float row_scale = x.scales[rg];
        const F both = S::mul(scale, S::set1(row_scale));
        if constexpr (kFine) dots[t][r] = S::iadd(S::template ishift<8>(dots[t][r]), low_dots[t][r]);
        if (w.symmetric) {
          const auto centred = S::isub(dots[t][r], S::iset1(x.sums[rg] * (1 << (kBits - 1))));
          acc[t][r] = S::fma(S::to_float(centred), both, acc[t][r]);
        } else {
          acc[t][r] = S::fma(S::to_float(dots[t][r]), both, acc[t][r]);
          const F bias = load_scale<S>(w.scale_type, w.biases, at);
          acc[t][r] = S::fma(bias, S::set1(row_scale * static_cast<float>(x.sums[rg])), acc[t][r]);
        }
      }
    }
  }
  for (int t = 0; t < kTiles; ++t)
    for (int r = 0; r < kRows; ++r) finish<S>(out, w.out, tile + t, row + r, acc[t][r]);
}

template <typename S, int kBits, int kTiles, int kRows>
inline void f32_block(const AffineWeight& w, const float* x, bool round_bf16, const LinearOutput& out, int tile,
                      int row) {
  using F = typename S::F;
  const int groups = w.in / w.group, chunks = w.group / kChunk;
  const std::size_t tile_bytes = chunk_bytes(kBits) * (w.in / kChunk);
  const float* xs = x + static_cast<std::ptrdiff_t>(row) * w.in;
  F acc[kTiles][kRows];
  for (int t = 0; t < kTiles; ++t)
    for (int r = 0; r < kRows; ++r) acc[t][r] = S::zero();
  for (int g = 0; g < groups; ++g) {
    for (int t = 0; t < kTiles; ++t) {
      const std::size_t at = (static_cast<std::size_t>(tile + t) * groups + g) * kLanes;
      const F scale = load_scale<S>(w.scale_type, w.scales, at);
      const F bias = w.symmetric ? S::mul(scale, S::set1(-static_cast<float>(1 << (kBits - 1))))
                                 : load_scale<S>(w.scale_type, w.biases, at);
      for (int c = g * chunks; c < (g + 1) * chunks; ++c) {
        typename S::B bytes[8];
        unpack<S, kBits>(w.codes + (tile + t) * tile_bytes + c * chunk_bytes(kBits), bytes);
        for (int s = 0; s < 8; ++s) {
          const F codes[4] = {S::template byte_to_float<0>(bytes[s]), S::template byte_to_float<1>(bytes[s]),
                              S::template byte_to_float<2>(bytes[s]), S::template byte_to_float<3>(bytes[s])};
          for (int j = 0; j < 4; ++j) {
            F weight = S::fma(codes[j], scale, bias);
            if (round_bf16) weight = S::round_bf16(weight);
            for (int r = 0; r < kRows; ++r)
              acc[t][r] = S::fma(weight, S::set1(xs[static_cast<std::ptrdiff_t>(r) * w.in + c * kChunk + 4 * s + j]),
                                 acc[t][r]);
          }
        }
      }
    }
  }
  for (int t = 0; t < kTiles; ++t)
    for (int r = 0; r < kRows; ++r) finish<S>(out, w.out, tile + t, row + r, acc[t][r]);
}

template <typename S, int kTiles, int kRows>
inline void dense_block(const DenseWeight& w, const float* x, bool round_bf16, const LinearOutput& out, int tile,
                        int row) {
  using F = typename S::F;
  const float* xs = x + static_cast<std::ptrdiff_t>(row) * w.in;
  const std::size_t tile_elements = static_cast<std::size_t>(w.in) * kLanes;
  F acc[kTiles][kRows];
  for (int t = 0; t < kTiles; ++t)
    for (int r = 0; r < kRows; ++r) acc[t][r] = S::zero();
  for (int k = 0; k < w.in; ++k) {
    for (int t = 0; t < kTiles; ++t) {
      F weight = load_scale<S>(w.type, w.values, (tile + t) * tile_elements + static_cast<std::size_t>(k) * kLanes);
      if (round_bf16) weight = S::round_bf16(weight);
      for (int r = 0; r < kRows; ++r)
        acc[t][r] = S::fma(weight, S::set1(xs[static_cast<std::ptrdiff_t>(r) * w.in + k]), acc[t][r]);
    }
  }
  for (int t = 0; t < kTiles; ++t)
    for (int r = 0; r < kRows; ++r) finish<S>(out, w.out, tile + t, row + r, acc[t][r]);
}

// Covers rows by blocks of kRows... (descending, ending in 1) and tiles by kTileStep where a block has few rows.
// block(tiles, rows, tile, row) takes the block's extent as integral constants.
template <int kTileStep, int... kRows, typename Block>
inline void cover(int first_tile, int last_tile, int first_row, int last_row, Block block) {
  int row = first_row;
  const auto rows_of = [&](auto rows) {
    constexpr int kStep = decltype(rows)::value <= 2 ? kTileStep : 1;
    for (; row + decltype(rows)::value <= last_row; row += decltype(rows)::value) {
      int tile = first_tile;
      for (; tile + kStep <= last_tile; tile += kStep) block(Int<kStep>{}, rows, tile, row);
      for (; tile < last_tile; ++tile) block(Int<1>{}, rows, tile, row);
    }
  };
  (rows_of(Int<kRows>{}), ...);
}

template <typename Fn>
inline void with_bits(int bits, Fn fn) {
  switch (bits) {
    case 2:
      return fn(Int<2>{});
    case 3:
      return fn(Int<3>{});
    case 4:
      return fn(Int<4>{});
    case 5:
      return fn(Int<5>{});
    case 6:
      return fn(Int<6>{});
    default:
      return fn(Int<8>{});
  }
}

template <typename S>
void linear_int8(const AffineWeight& w, const QuantRows& x, const LinearOutput& out, int first_tile, int last_tile,
                 int first_row, int last_row) {
  with_bits(w.bits, [&](auto bits) {
    constexpr int kBits = decltype(bits)::value;
    if (x.low != nullptr) {
      cover<2, 4, 1>(first_tile, last_tile, first_row, last_row, [&](auto tiles, auto rows, int tile, int row) {
        int8_block<S, kBits, true, decltype(tiles)::value, decltype(rows)::value>(w, x, out, tile, row);
      });
    } else {
      cover<2, 8, 4, 2, 1>(first_tile, last_tile, first_row, last_row, [&](auto tiles, auto rows, int tile, int row) {
        int8_block<S, kBits, false, decltype(tiles)::value, decltype(rows)::value>(w, x, out, tile, row);
      });
    }
  });
}

template <typename S>
void linear_f32(const AffineWeight& w, const float* x, bool round_bf16, const LinearOutput& out, int first_tile,
                int last_tile, int first_row, int last_row) {
  with_bits(w.bits, [&](auto bits) {
    cover<2, 4, 1>(first_tile, last_tile, first_row, last_row, [&](auto tiles, auto rows, int tile, int row) {
      f32_block<S, decltype(bits)::value, decltype(tiles)::value, decltype(rows)::value>(w, x, round_bf16, out, tile,
                                                                                         row);
    });
  });
}

template <typename S>
void linear_dense(const DenseWeight& w, const float* x, bool round_bf16, const LinearOutput& out, int first_tile,
                  int last_tile, int first_row, int last_row) {
  cover<4, 4, 1>(first_tile, last_tile, first_row, last_row, [&](auto tiles, auto rows, int tile, int row) {
    dense_block<S, decltype(tiles)::value, decltype(rows)::value>(w, x, round_bf16, out, tile, row);
  });
}

}  // namespace
}  // namespace steadfast::cpu
