// Packing on the host, a strip of 16 features at a time: rows are read once, then fragments are gathered from them.
#include "backend/cuda/pack.h"

#include <cmath>
#include <cstring>

namespace steadfast::cuda {
namespace {

// 16 rows of codes, scales and biases; rows behind the weight's end stay zero.
struct StripRows {
  StripRows(const AffineReader& reader, std::span<const int> rows)
      : groups(reader.groups()),
        width(chunks_of(reader.in()) * kChunk),
        codes(static_cast<std::size_t>(width) * kStripFeatures),
        scales(static_cast<std::size_t>(groups) * kStripFeatures),
        biases(scales.size()) {
    for (std::size_t f = 0; f < rows.size(); ++f) {
      const std::size_t at = f * static_cast<std::size_t>(groups);
      if (rows[f] >= 0)
        reader.read(rows[f], codes.data() + f * static_cast<std::size_t>(width), scales.data() + at,
                    biases.data() + at);
    }
  }
  unsigned code(int feature, int k) const {
    return codes[static_cast<std::size_t>(feature) * static_cast<std::size_t>(width) + static_cast<std::size_t>(k)];
  }
  std::size_t at(int feature, int group) const {
    return static_cast<std::size_t>(feature) * static_cast<std::size_t>(groups) + static_cast<std::size_t>(group);
  }

  int groups, width;
  std::vector<std::uint8_t> codes;
  std::vector<float> scales, biases;
};

void pack_four(const StripRows& rows, int chunk, std::uint8_t* to) {
  for (int lane = 0; lane < 32; ++lane) {
    std::uint32_t words[4];
    for (int step = 0; step < 4; ++step) {
      std::uint32_t word = 0;
      for (int j = 0; j < 4; ++j) {
        const int feature = lane / 4 + (j & 1) * 8, k = chunk * kChunk + step * 16 + (j >> 1) * 8 + lane % 4 * 2;
        word |= rows.code(feature, k) << (4 * j) | rows.code(feature, k + 1) << (4 * j + 16);
      }
      words[step] = word;
    }
    std::memcpy(to + lane * 16, words, 16);
  }
}

// Two halves of two k16 steps each: a step's words hold a0, a1 and a2, a3, bytes in the order (a0 a1) of 2t, of 2t + 1.
void pack_eight(const StripRows& rows, int chunk, std::uint8_t* to) {
  for (int lane = 0; lane < 32; ++lane)
    for (int step = 0; step < 4; ++step) {
      std::uint8_t bytes[8];
      for (int i = 0; i < 8; ++i) {
        const int feature = lane / 4 + (i & 1) * 8;
        const int k = chunk * kChunk + step * 16 + (i >> 2) * 8 + lane % 4 * 2 + (i >> 1 & 1);
        bytes[i] = static_cast<std::uint8_t>(rows.code(feature, k));
      }
      std::memcpy(to + step / 2 * 512 + lane * 16 + step % 2 * 8, bytes, 8);
    }
}

bool pack_scales(const StripRows& rows, Form form, int chunk, int group, std::uint8_t* to) {
  const int per_chunk = groups_per_chunk(form);
  for (int u = 0; u < per_chunk; ++u, to += group_bytes(form)) {
    const int index = (chunk * kChunk + u * (kChunk / per_chunk)) / group;
    if (index >= rows.groups) continue;  // behind the inputs' end
    for (int feature = 0; feature < kStripFeatures; ++feature) {
      const float scale = rows.scales[rows.at(feature, index)], bias = rows.biases[rows.at(feature, index)];
      const int slot = feature % 8 * 4 + feature / 8 * 2;
      if (float_scales(form)) {
        const float pair[2] = {scale, bias};
        std::memcpy(to + slot * 4, pair, 8);
        continue;
      }
      if (!(std::fabs(scale) < std::ldexp(1.0f, 128 - scale_exponent(form)))) return false;
      const std::uint16_t pair[2] = {f32_to_bf16(std::ldexp(scale, scale_exponent(form))), f32_to_bf16(bias)};
      std::memcpy(to + slot * 2, pair, 4);
    }
  }
  return true;
}

}  // namespace

Form affine_form(const AffineReader& reader) {
  const bool bf16 = reader.scale_dtype() == DType::kBF16;
  if (reader.bits() > 4) return bf16 ? Form::kEight : Form::kEightFloat;
  if (!bf16) return Form::kFourFloat;
  return reader.group() == 32 ? Form::kFourSplit : Form::kFour;
}

Form float_form(Form form) {
  return form == Form::kEight || form == Form::kEightFloat ? Form::kEightFloat : Form::kFourFloat;
}

std::vector<int> tile_rows(int out, std::span<const int> row_map, int tile) {
  std::vector<int> rows(kTileFeatures, -1);
  for (int i = 0; i < kTileFeatures && tile * kTileFeatures + i < out; ++i) {
    const int feature = tile * kTileFeatures + i;
    rows[static_cast<std::size_t>(i)] = row_map.empty() ? feature : row_map[static_cast<std::size_t>(feature)];
  }
  return rows;
}

bool pack_tile(const AffineReader& reader, Form form, std::span<const int> rows, std::uint8_t* to) {
  const int chunks = chunks_of(reader.in()), bytes = strip_bytes(form);
  for (int strip = 0; strip < kTileStrips; ++strip) {
    const auto mine = rows.subspan(static_cast<std::size_t>(strip) * kStripFeatures, kStripFeatures);
    if (mine[0] < 0) break;
    const StripRows data(reader, mine);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      std::uint8_t* at =
          to + static_cast<std::size_t>(strip_place(form, chunks, strip, chunk)) * static_cast<std::size_t>(bytes);
      if (code_bytes(form) == 512)
        pack_four(data, chunk, at);
      else
        pack_eight(data, chunk, at);
      if (!pack_scales(data, form, chunk, reader.group(), at + code_bytes(form))) return false;
    }
  }
  return true;
}

void pack_tile(const DenseReader& reader, std::span<const int> rows, std::uint8_t* to) {
  const int chunks = chunks_of(reader.in());
  const auto width = static_cast<std::size_t>(chunks) * kChunk;
  std::vector<float> row(width);
  std::vector<std::uint16_t> strip_rows(width * kStripFeatures);
  for (int strip = 0; strip < kTileStrips; ++strip) {
    const auto mine = rows.subspan(static_cast<std::size_t>(strip) * kStripFeatures, kStripFeatures);
    if (mine[0] < 0) break;
    for (std::size_t f = 0; f < kStripFeatures; ++f) {
      row.assign(width, 0.0f);
      if (mine[f] >= 0) reader.read(mine[f], row.data());
      for (std::size_t k = 0; k < width; ++k) strip_rows[f * width + k] = f32_to_bf16(row[k]);
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
      std::uint8_t* at = to + static_cast<std::size_t>(strip_place(Form::kDense, chunks, strip, chunk)) *
                                  static_cast<std::size_t>(strip_bytes(Form::kDense));
      for (int i = 0; i < 4 * 32 * 4; ++i) {  // step, lane, word
        const int step = i / 128, lane = i / 4 % 32, j = i % 4;
        const auto feature = static_cast<std::size_t>(lane / 4 + (j & 1) * 8);
        const auto k = static_cast<std::size_t>(chunk * kChunk + step * 16 + (j >> 1) * 8 + lane % 4 * 2);
        std::memcpy(at + i * 4, strip_rows.data() + feature * width + k, 4);
      }
    }
  }
}

}  // namespace steadfast::cuda
