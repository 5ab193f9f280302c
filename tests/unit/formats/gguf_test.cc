// GGUF files that are valid: every kind of value and tensor comes back as it was put in.
#include "formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/encode.h"
#include "support/gguf_builder.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

using test::Bytes;
using test::GgufBuilder;
using testing::ElementsAre;

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) - static_cast<float>(count) / 2;
  return values;
}

std::shared_ptr<const GgufFile> opened(const Bytes& bytes) {
  auto file = GgufFile::from_bytes(bytes, "test.gguf");
  EXPECT_TRUE(file) << file.message();
  return file ? *file : nullptr;
}

TEST(Gguf, KeepsNumbersOfEveryWidth) {
  GgufBuilder builder;
  builder.add_kv("u8", std::uint8_t{255}).add_kv("i8", std::int8_t{-128}).add_kv("u16", std::uint16_t{65535});
  builder.add_kv("i16", std::int16_t{-32768}).add_kv("u32", std::uint32_t{4294967295u}).add_kv("i32", -2147483647 - 1);
  builder.add_kv("i64", std::numeric_limits<std::int64_t>::min());
  builder.add_kv("u64", std::numeric_limits<std::uint64_t>::max());
  builder.add_kv("f32", 1.5f).add_kv("f64", 1e300).add_kv("yes", true).add_kv("no", false);
  const Bytes bytes = builder.build();
  const auto file = opened(bytes);
  ASSERT_NE(file, nullptr);
  EXPECT_THAT(file->keys(),
              ElementsAre("u8", "i8", "u16", "i16", "u32", "i32", "i64", "u64", "f32", "f64", "yes", "no"));
  EXPECT_EQ(file->value("u8")->as_int(), 255);
  EXPECT_EQ(file->value("i8")->as_int(), -128);
  EXPECT_EQ(file->value("u16")->as_int(), 65535);
  EXPECT_EQ(file->value("i16")->as_int(), -32768);
  EXPECT_EQ(file->value("u32")->as_int(), 4294967295);
  EXPECT_EQ(file->value("i32")->as_int(), -2147483648);
  EXPECT_EQ(file->value("i64")->as_int(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(file->value("u64")->as_int(), std::nullopt) << "does not fit";
  EXPECT_EQ(file->value("u64")->as_float(), 0x1p64);
  EXPECT_EQ(file->value("f32")->as_float(), 1.5);
  EXPECT_EQ(file->value("f32")->as_int(), std::nullopt);
  EXPECT_EQ(file->value("f64")->as_float(), 1e300);
  EXPECT_EQ(file->value("yes")->as_bool(), true);
  EXPECT_EQ(file->value("no")->as_bool(), false);
  EXPECT_EQ(file->value("no")->as_int(), std::nullopt);
  EXPECT_EQ(file->value("absent"), nullptr);
}

TEST(Gguf, KeepsStringsAndArrays) {
  GgufBuilder builder;
  builder.add_kv("name",
                 "m\xC3\xB6"
                 "del");
  builder.add_kv("raw", std::string("\xFF\x00", 2));
  builder.add_kv("tokens", std::vector<std::string>{"a", "", "bc"}).add_kv("types", std::vector<std::int32_t>{1, -3});
  builder.add_kv("flags", std::vector<bool>{true, false}).add_kv("none", std::vector<float>{});
  const Bytes bytes = builder.build();
  const auto file = opened(bytes);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->value("name")->as_string(),
            "m\xC3\xB6"
            "del");
  EXPECT_EQ(file->value("raw")->as_string(), std::string_view("\xFF\x00", 2)) << "values are bytes";
  const GgufArray* tokens = file->value("tokens")->as_array();
  ASSERT_NE(tokens, nullptr);
  ASSERT_EQ(tokens->size(), 3u);
  EXPECT_EQ((*tokens)[0].as_string(), "a");
  EXPECT_EQ((*tokens)[1].as_string(), "");
  EXPECT_EQ((*tokens)[2].as_string(), "bc");
  EXPECT_EQ((*file->value("types")->as_array())[1].as_int(), -3);
  EXPECT_EQ((*file->value("flags")->as_array())[0].as_bool(), true);
  EXPECT_TRUE(file->value("none")->as_array()->empty());
  EXPECT_EQ(file->value("name")->as_array(), nullptr);
}

TEST(Gguf, KeepsNestedArrays) {
  Bytes inner;  // array of arrays: {{7, 8}, {}}
  test::append(inner, std::uint32_t{9});
  test::append(inner, std::uint64_t{2});
  for (const std::uint64_t count : {2, 0}) {
    test::append(inner, std::uint32_t{0});
    test::append(inner, count);
    for (std::uint64_t i = 0; i < count; ++i) test::append(inner, static_cast<std::uint8_t>(7 + i));
  }
  const Bytes bytes = GgufBuilder().add_raw_kv("nested", 9, inner).build();
  const auto file = opened(bytes);
  ASSERT_NE(file, nullptr);
  const GgufArray* outer = file->value("nested")->as_array();
  ASSERT_EQ(outer->size(), 2u);
  EXPECT_EQ((*(*outer)[0].as_array())[1].as_int(), 8);
  EXPECT_TRUE((*outer)[1].as_array()->empty());
}

class GgufTensor : public testing::TestWithParam<DType> {};

TEST_P(GgufTensor, ComesBackWithItsShapeAndBytes) {
  for (const std::uint32_t alignment : {8u, 32u, 40u, 4096u}) {
    GgufBuilder builder;
    builder.set_alignment(alignment);
    const Bytes first = test::encode(GetParam(), ramp(3 * 64));
    builder.add_tensor("a.weight", GetParam(), {3, 64}, first).add_tensor("b.weight", GetParam(), {32}, ramp(32));
    const Bytes bytes = builder.build();
    const auto file = opened(bytes);
    ASSERT_NE(file, nullptr);
    EXPECT_THAT(file->names(), ElementsAre("a.weight", "b.weight"));
    const TensorView* tensor = file->find("a.weight");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->dtype, GetParam());
    EXPECT_THAT(tensor->shape, ElementsAre(3, 64)) << "row-major, as in torch";
    EXPECT_EQ(Bytes(tensor->data.begin(), tensor->data.end()), first);
    EXPECT_EQ((file->find("b.weight")->data.data() - bytes.data()) % 8, 0);
    EXPECT_EQ(file->find("c.weight"), nullptr);
    file->release(*tensor);
    file->will_need(*tensor);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufTensor,
                         testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1,
                                         DType::kQ8_0),
                         [](const auto& dtype) { return std::string(steadfast::info(dtype.param).name); });

TEST(Gguf, TensorsMayLieInAnyOrderAndBeScalars) {
  GgufBuilder builder;
  builder.add_entry({"second", {2}, 0, 32, test::encode(DType::kF32, ramp(2))});
  builder.add_entry({"first", {}, 0, 0, {}});
  const Bytes bytes = builder.build();
  ASSERT_FALSE(GgufFile::from_bytes(bytes, "short.gguf")) << "the data of 'second' is not there";
  builder = GgufBuilder();
  builder.add_entry({"second", {2}, 0, 32, Bytes(40)}).add_entry({"first", {}, 0, 0, {}});
  const Bytes whole = builder.build();
  const auto file = opened(whole);
  ASSERT_NE(file, nullptr);
  EXPECT_THAT(file->names(), ElementsAre("second", "first"));
  EXPECT_EQ(file->find("first")->elements(), 1);
  EXPECT_EQ(file->find("first")->data.size(), 4u);
}

TEST(Gguf, VersionTwoAndFilesWithoutTensorsOpen) {
  const Bytes two = GgufBuilder().set_version(2).add_kv("a", 1).add_tensor("t", DType::kF32, {4}, ramp(4)).build();
  EXPECT_NE(opened(two), nullptr);
  const Bytes metadata_only = GgufBuilder().add_kv("a", 1).build();
  const auto file = opened(metadata_only);
  ASSERT_NE(file, nullptr);
  EXPECT_TRUE(file->names().empty());
}

TEST(Gguf, OpensFromDiskAndReadsAgainAfterRelease) {
  const test::TempFolder folder;
  const auto values = ramp(64 * 1024);
  const auto path = folder.write("model.gguf", GgufBuilder().add_tensor("w", DType::kF32, {64, 1024}, values).build());
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file) << file.message();
  const TensorView* tensor = (*file)->find("w");
  ASSERT_NE(tensor, nullptr);
  const Bytes expected = test::encode(DType::kF32, values);
  (*file)->will_need(*tensor);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), tensor->data.begin(), tensor->data.end()));
  (*file)->release(*tensor);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), tensor->data.begin(), tensor->data.end()));
}

}  // namespace
}  // namespace steadfast
