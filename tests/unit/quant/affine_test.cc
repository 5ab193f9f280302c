// Decoders of quantised matrices: the byte layouts of model-spec 3.2, 3.3 and 4.2, MLX's own packing at every bits and
// group (tests/golden/mlx), and a sentence for every module whose tensors do not fit.
#include "quant/affine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "quant/dense.h"
#include "support/gguf_builder.h"
#include "support/safetensors_builder.h"

namespace steadfast {
namespace {

using test::append;
using test::Bytes;
using test::GgufBuilder;
using test::SafetensorsBuilder;

Bytes words(const std::vector<std::uint32_t>& values) {
  Bytes bytes;
  for (const std::uint32_t value : values) append(bytes, value);
  return bytes;
}

// A module "m" of `out` rows with the given words, scales 1 and biases 0.
Bytes module_of(const std::vector<std::uint32_t>& row, int out, int groups) {
  Bytes all;
  for (int i = 0; i < out; ++i) test::append_bytes(all, words(row));
  const auto count = static_cast<std::size_t>(out * groups);
  return SafetensorsBuilder()
      .add_tensor("m.weight", DType::kU32, {out, static_cast<std::int64_t>(row.size())}, all)
      .add_tensor("m.scales", DType::kF32, {out, groups}, std::vector<float>(count, 1))
      .add_tensor("m.biases", DType::kF32, {out, groups}, std::vector<float>(count, 0))
      .build();
}

std::vector<int> codes_of(const std::vector<std::uint32_t>& row, int bits) {
  const Bytes bytes = module_of(row, 2, 1);
  auto file = SafetensorsFile::from_bytes(bytes, "test");
  EXPECT_TRUE(file) << file.message();
  auto reader = read_mlx_affine(**file, "m", bits, 32);
  EXPECT_TRUE(reader) << reader.message();
  if (!reader) return {};
  std::vector<std::uint8_t> codes(32);
  float scale, bias;
  (*reader)->read(1, codes.data(), &scale, &bias);  // the second row: offsets count too
  EXPECT_EQ(scale, 1.0f);
  EXPECT_EQ(bias, 0.0f);
  return {codes.begin(), codes.end()};
}

TEST(MlxAffine, ReadsTheExamplesOfTheSpecification) {
  std::vector<int> expected(32);
  for (int i = 0; i < 32; ++i) expected[static_cast<std::size_t>(i)] = i % 4;
  EXPECT_EQ(codes_of({0xe4e4e4e4, 0xe4e4e4e4}, 2), expected);
  for (int i = 0; i < 32; ++i) expected[static_cast<std::size_t>(i)] = (5 * i + 3) % 8;
  EXPECT_EQ(codes_of({0x43c67543, 0x7543c675, 0xc67543c6}, 3), expected);
  for (int i = 0; i < 32; ++i) expected[static_cast<std::size_t>(i)] = i % 8;
  EXPECT_EQ(codes_of({0x76543210, 0x76543210, 0x76543210, 0x76543210}, 4), expected);
  for (int i = 0; i < 32; ++i) expected[static_cast<std::size_t>(i)] = (7 * (i % 16) + 1) % 64;
  EXPECT_EQ(codes_of({0x1d58f201, 0x7039cab9, 0xaa371538, 0x1d58f201, 0x7039cab9, 0xaa371538}, 6), expected);
}

TEST(MlxAffine, AgreesWithMlxAtEveryBitsAndGroup) {
  for (const char* dtype : {"bf16", "f16"}) {
    auto file =
        SafetensorsFile::open(std::string(STEADFAST_SOURCE_DIR "/tests/golden/mlx/pack_") + dtype + ".safetensors");
    ASSERT_TRUE(file) << file.message();
    const double roundoff = std::string(dtype) == "f16" ? 0x1p-11 : 0x1p-8;
    for (const int bits : {2, 3, 4, 5, 6, 8}) {
      for (const int group : {32, 64, 128}) {
        const std::string module = fmt::format("b{}.g{}", bits, group);
        auto reader = read_mlx_affine(**file, module, bits, group);
        ASSERT_TRUE(reader) << reader.message();
        auto values = DenseReader::open(**file, *(*file)->find(module + ".values"));
        ASSERT_TRUE(values) << values.message();
        ASSERT_EQ((*reader)->in(), 256);
        std::vector<std::uint8_t> codes(256);
        std::vector<float> scales(static_cast<std::size_t>(256 / group)), biases(scales.size()), expanded(256),
            exact(256);
        for (int row = 0; row < (*reader)->out(); ++row) {
          (*reader)->read(row, codes.data(), scales.data(), biases.data());
          expand_row(**reader, row, expanded.data());
          values->read(row, exact.data());
          for (std::size_t k = 0; k < 256; ++k) {
            const std::size_t g = k / static_cast<std::size_t>(group);
            ASSERT_EQ(expanded[k], std::fma(static_cast<float>(codes[k]), scales[g], biases[g]));
            // MLX multiplies and adds in the narrow type: two of its roundings lie between.
            const double product = std::fabs(codes[k] * static_cast<double>(scales[g]));
            ASSERT_NEAR(expanded[k], exact[k], roundoff * (product + std::fabs(static_cast<double>(exact[k]))) + 1e-7)
                << module << ", row " << row << ", " << k;
          }
        }
      }
    }
  }
}

void expect_mlx_refused(const SafetensorsBuilder& builder, int bits, int group, const std::string& part) {
  const Bytes bytes = builder.build();
  auto file = SafetensorsFile::from_bytes(bytes, "test");
  ASSERT_TRUE(file) << file.message();
  const auto reader = read_mlx_affine(**file, "m", bits, group);
  ASSERT_FALSE(reader) << part;
  EXPECT_NE(reader.message().find(part), std::string::npos) << reader.message();
  EXPECT_EQ(reader.message().find("m"), 0u) << "names the module first: " << reader.message();
}

TEST(MlxAffine, RefusesTensorsThatDoNotFit) {
  const auto with = [](DType type, std::vector<std::int64_t> weight, DType side, std::vector<std::int64_t> scales,
                       std::vector<std::int64_t> biases) {
    SafetensorsBuilder builder;
    const auto blank = [&](const char* name, DType dtype, const std::vector<std::int64_t>& shape) {
      std::size_t count = info(dtype).block_bytes;
      for (const auto extent : shape) count *= static_cast<std::size_t>(extent);
      builder.add_tensor(name, dtype, shape, Bytes(count));
    };
    blank("m.weight", type, weight);
    blank("m.scales", side, scales);
    blank("m.biases", side, biases);
    return builder;
  };
  expect_mlx_refused(SafetensorsBuilder().add_tensor("m.weight", DType::kU32, {1, 4}, Bytes(16)), 4, 32, "lacks");
  const auto good = with(DType::kU32, {2, 8}, DType::kF16, {2, 2}, {2, 2});
  expect_mlx_refused(good, 7, 32, "7 bits");
  expect_mlx_refused(good, 4, 48, "groups of 48");
  expect_mlx_refused(good, 4, 64, "do not hold");
  expect_mlx_refused(with(DType::kI32, {2, 8}, DType::kF16, {2, 2}, {2, 2}), 4, 32, "U32");
  expect_mlx_refused(with(DType::kU32, {16}, DType::kF16, {2, 2}, {2, 2}), 4, 32, "matrix");
  expect_mlx_refused(with(DType::kU32, {2, 8}, DType::kI16, {2, 2}, {2, 2}), 4, 32, "F16, BF16 or F32");
  expect_mlx_refused(with(DType::kU32, {2, 8}, DType::kF16, {2, 2}, {2, 1}), 4, 32, "do not fit");
  expect_mlx_refused(with(DType::kU32, {2, 8}, DType::kF16, {3, 2}, {3, 2}), 4, 32, "do not fit");
  expect_mlx_refused(with(DType::kU32, {2, 0}, DType::kF16, {2, 0}, {2, 0}), 4, 32, "not a supported size");
}

// One row of two blocks of the type, then the same as floats by the layout's formula.
struct Blocks {
  Bytes bytes;
  std::vector<float> values;
};

Blocks blocks_of(DType dtype) {
  Blocks blocks;
  for (const float scale : {0.5f, -0.25f}) {
    append(blocks.bytes, f32_to_f16(scale));
    const float least = 1.75f;
    if (dtype == DType::kQ4_1) append(blocks.bytes, f32_to_f16(least));
    std::vector<float> codes(32);
    if (dtype == DType::kQ8_0) {
      for (int j = 0; j < 32; ++j) {
        const auto q = static_cast<std::int8_t>(j * 8 - 128);
        append(blocks.bytes, q);
        codes[static_cast<std::size_t>(j)] = q;
      }
    } else {
      for (unsigned j = 0; j < 16; ++j) {
        const unsigned low = (3 * j + 1) % 16, high = (5 * j + 2) % 16;
        append(blocks.bytes, static_cast<std::uint8_t>(low | high << 4));
        codes[j] = static_cast<float>(low) - (dtype == DType::kQ4_0 ? 8.0f : 0.0f);
        codes[j + 16] = static_cast<float>(high) - (dtype == DType::kQ4_0 ? 8.0f : 0.0f);
      }
    }
    for (const float code : codes) blocks.values.push_back(scale * code + (dtype == DType::kQ4_1 ? least : 0.0f));
  }
  return blocks;
}

TEST(GgufBlocks, AreReadAsTheirLayoutSays) {
  for (const DType dtype : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0}) {
    const Blocks blocks = blocks_of(dtype);
    Bytes rows = blocks.bytes;
    test::append_bytes(rows, blocks.bytes);
    const Bytes bytes = GgufBuilder().add_tensor("w", dtype, {2, 64}, rows).build();
    auto file = GgufFile::from_bytes(bytes, "test");
    ASSERT_TRUE(file) << file.message();
    auto reader = read_gguf_blocks(**file, *(*file)->find("w"));
    ASSERT_TRUE(reader) << reader.message();
    EXPECT_EQ((*reader)->bits(), dtype == DType::kQ8_0 ? 8 : 4);
    EXPECT_EQ((*reader)->group(), 32);
    for (int row = 0; row < 2; ++row) {
      std::vector<float> expanded(64);
      expand_row(**reader, row, expanded.data());
      EXPECT_EQ(expanded, blocks.values) << info(dtype).name << ", row " << row;
    }
  }
}

TEST(GgufBlocks, RefuseOtherTensors) {
  const Bytes bytes = GgufBuilder()
                          .add_tensor("plain", DType::kF32, {2, 32}, std::vector<float>(64))
                          .add_tensor("vector", DType::kQ8_0, {32}, std::vector<float>(32))
                          .build();
  auto file = GgufFile::from_bytes(bytes, "test");
  ASSERT_TRUE(file) << file.message();
  for (const char* name : {"plain", "vector"}) {
    const auto reader = read_gguf_blocks(**file, *(*file)->find(name));
    ASSERT_FALSE(reader);
    EXPECT_NE(reader.message().find(name), std::string::npos);
  }
}

TEST(DenseReader, WidensExactlyAndRefusesIntegers) {
  const std::vector<float> values = {1, -2.5f, 0.125f, 65504, -0.0f, 3};
  SafetensorsBuilder builder;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    builder.add_tensor(std::string(info(dtype).name), dtype, {2, 3}, values);
  builder.add_tensor("ints", DType::kI32, {2}, Bytes(8)).add_tensor("one", DType::kF32, {}, std::vector<float>{1});
  const Bytes bytes = builder.build();
  auto file = SafetensorsFile::from_bytes(bytes, "test");
  ASSERT_TRUE(file) << file.message();
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    auto reader = DenseReader::open(**file, *(*file)->find(info(dtype).name));
    ASSERT_TRUE(reader) << reader.message();
    std::vector<float> row(3);
    reader->read(1, row.data());
    const float big = dtype == DType::kBF16 ? 65536.0f : 65504.0f;
    EXPECT_EQ(row, (std::vector<float>{big, -0.0f, 3}));
  }
  EXPECT_NE(DenseReader::open(**file, *(*file)->find("ints")).message().find("ints is I32"), std::string::npos);
  EXPECT_NE(DenseReader::open(**file, *(*file)->find("one")).message().find("single number"), std::string::npos);
}

}  // namespace
}  // namespace steadfast
