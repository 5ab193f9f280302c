// safetensors files that lie: each lie is refused with a sentence that names the file and what is wrong.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/safetensors.h"
#include "support/safetensors_builder.h"

namespace steadfast {
namespace {

using test::Bytes;
using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const Bytes& bytes) {
  const auto file = SafetensorsFile::from_bytes(bytes, "lie.safetensors");
  if (file) return "(accepted)";
  EXPECT_THAT(file.message(), testing::StartsWith("lie.safetensors: "));
  EXPECT_THAT(file.message(), testing::Not(HasSubstr("\n")));
  return file.message();
}

std::string refusal(std::string_view header, std::size_t data_bytes = 64) {
  return refusal(test::safetensors_bytes(header, Bytes(data_bytes)));
}

// A header of one tensor 'w' with these members.
std::string refusal_of_tensor(std::string_view members) { return refusal(fmt::format(R"({{"w":{{{}}}}})", members)); }

std::string refusal_of_shape(std::string_view shape, std::string_view offsets = "[0,4]") {
  return refusal_of_tensor(fmt::format(R"("dtype":"U8","shape":{},"data_offsets":{})", shape, offsets));
}

TEST(SafetensorsLies, EveryTruncationIsRefused) {
  test::SafetensorsBuilder builder;
  builder.add_tensor("a", DType::kF32, {2, 2}, Bytes(16))
      .add_tensor("b", DType::kU8, {3}, Bytes(3))
      .add_metadata("format", "pt");
  const Bytes whole = builder.build();
  ASSERT_EQ(refusal(whole), "(accepted)");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(refusal(part), "(accepted)") << size << " of " << whole.size() << " bytes";
  }
}

TEST(SafetensorsLies, HeaderLength) {
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{100'000'000}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    Bytes bytes;
    test::append(bytes, length);
    test::append_text(bytes, "{}");
    EXPECT_THAT(refusal(bytes), HasSubstr("claims a header of")) << length;
  }
  EXPECT_THAT(refusal(Bytes(7)), HasSubstr("too short"));
}

TEST(SafetensorsLies, HeaderIsNotAnObjectOfTensors) {
  EXPECT_THAT(refusal("[]"), HasSubstr("does not start with a brace"));
  EXPECT_THAT(refusal(" {}"), HasSubstr("does not start with a brace"));
  EXPECT_THAT(refusal("\xEF\xBB\xBF{}"), HasSubstr("does not start with a brace"));
  EXPECT_THAT(refusal("{}{}"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal("{\"a\":"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(std::string_view("{}\0{", 4)), HasSubstr("NUL"));
  EXPECT_THAT(refusal("{\"a\xFF\":{}}"), HasSubstr("not JSON")) << "not UTF-8";
  EXPECT_THAT(refusal(R"({"a":1})"), AllOf(HasSubstr("'a'"), HasSubstr("unexpected form")));
  EXPECT_THAT(refusal(R"({"a":[]})"), HasSubstr("unexpected form"));
  EXPECT_THAT(refusal(R"({"a":null})"), HasSubstr("unexpected form"));
  EXPECT_THAT(refusal(R"({"a\u001b[2J":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})"), HasSubstr("'a\\x1B[2J'"));
  EXPECT_THAT(refusal(R"({"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})"), HasSubstr("empty"));
}

TEST(SafetensorsLies, DeepNesting) {
  EXPECT_THAT(refusal(R"({"a":)" + std::string(1'000'000, '[')), HasSubstr("unexpected form"));
  EXPECT_THAT(refusal(R"({"a":{"shape":[[]]}})"), HasSubstr("nested deeper"));
  EXPECT_THAT(refusal(R"({"a":{"shape":[{}]}})"), HasSubstr("nested deeper"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":{}}})"), HasSubstr("unexpected form"));
  EXPECT_THAT(refusal(R"({"__metadata__":[]})"), HasSubstr("unexpected form"));
  EXPECT_THAT(refusal(R"({"__metadata__":7})"), HasSubstr("unexpected form"));
  EXPECT_THAT(refusal(R"({"a":null})"), HasSubstr("unexpected form"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})"), HasSubstr("unexpected form"));
}

TEST(SafetensorsLies, DuplicateKeys) {
  const std::string tensor = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(refusal(fmt::format(R"({{"w":{0},"w":{0}}})", tensor)), HasSubstr("'w' is there twice"));
  EXPECT_THAT(refusal(fmt::format(R"({{"w":{0},"\u0077":{0}}})", tensor)), HasSubstr("'w' is there twice"));
  EXPECT_THAT(refusal_of_tensor(R"("dtype":"U8","shape":[1],"shape":[0],"data_offsets":[0,0])"),
              HasSubstr("'shape' is there twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":"1","a":"2"}})"), HasSubstr("'a' is there twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{},"__metadata__":{}})"), HasSubstr("twice"));
}

TEST(SafetensorsLies, MissingAndUnknownMembers) {
  EXPECT_THAT(refusal_of_tensor(""), HasSubstr("lacks"));
  EXPECT_THAT(refusal_of_tensor(R"("shape":[],"data_offsets":[0,1])"), HasSubstr("lacks"));
  EXPECT_THAT(refusal_of_tensor(R"("dtype":"U8","data_offsets":[0,1])"), HasSubstr("lacks"));
  EXPECT_THAT(refusal_of_tensor(R"("dtype":"U8","shape":[])"), HasSubstr("lacks"));
  EXPECT_THAT(refusal_of_tensor(R"("dtype":"U8","shape":[],"data_offsets":[0,1],"strides":[1])"),
              HasSubstr("unexpected form"));
  EXPECT_THAT(refusal_of_tensor(R"("dtype":"U8","shape":[],"data_offsets":[0,1],"x":1)"), HasSubstr("unexpected form"));
  EXPECT_THAT(refusal_of_tensor(R"("dtype":["U8"],"shape":[],"data_offsets":[0,1])"), HasSubstr("unexpected form"));
  EXPECT_THAT(refusal_of_tensor(R"("dtype":1,"shape":[],"data_offsets":[0,1])"), HasSubstr("unexpected form"));
  EXPECT_THAT(refusal_of_tensor(R"("dtype":"U8","shape":4,"data_offsets":[0,4])"), HasSubstr("unexpected form"));
}

TEST(SafetensorsLies, Dtypes) {
  for (const char* dtype : {"C64", "Q4_1", "f32", "", "F4", "\\u0000"}) {
    EXPECT_THAT(refusal_of_tensor(fmt::format(R"("dtype":"{}","shape":[],"data_offsets":[0,4])", dtype)),
                AllOf(HasSubstr("'w'"), HasSubstr("not supported")))
        << dtype;
  }
}

TEST(SafetensorsLies, Shapes) {
  EXPECT_EQ(refusal_of_shape("[4]"), "(accepted)");
  for (const char* bad :
       {"[-1]", "[-4,-1]", "[4.0]", "[4e0]", "[\"4\"]", "[null]", "[true]", "[18446744073709551616]"}) {
    EXPECT_THAT(refusal_of_shape(bad), HasSubstr("unexpected form")) << bad;
  }
  EXPECT_THAT(refusal_of_shape("[18446744073709551615]"), HasSubstr("beyond 2^63-1"));
  EXPECT_THAT(refusal_of_shape("[4294967296,4294967296]"), HasSubstr("too large")) << "wraps to 0";
  EXPECT_THAT(refusal_of_shape("[4294967296,4294967296,0]"), HasSubstr("too large"));
  EXPECT_THAT(refusal_of_tensor(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])"),
              HasSubstr("too large"))
      << "the product with the element size wraps to 0";
  EXPECT_THAT(refusal_of_shape("[5]"), HasSubstr("needs 5 bytes"));
  EXPECT_THAT(refusal_of_shape("[3]"), HasSubstr("needs 3 bytes"));
}

TEST(SafetensorsLies, Offsets) {
  for (const char* bad : {"[0]", "[]"}) EXPECT_THAT(refusal_of_shape("[4]", bad), HasSubstr("two data_offsets")) << bad;
  for (const char* bad : {"[0,4,8]", "[-4,0]", "[0,4.0]", "4"}) {
    EXPECT_THAT(refusal_of_shape("[4]", bad), HasSubstr("unexpected form")) << bad;
  }
  EXPECT_THAT(refusal_of_shape("[4]", "[8,4]"), HasSubstr("data_offsets are [8, 4]"));
  EXPECT_THAT(refusal_of_shape("[4]", "[18446744073709551615,3]"), HasSubstr("data_offsets")) << "wraps to 4";
  EXPECT_THAT(refusal_of_shape("[4]", "[61,65]"), HasSubstr("ends at byte 65"));
  EXPECT_THAT(refusal_of_shape("[4]", "[18446744073709551611,18446744073709551615]"), HasSubstr("ends at byte"));
  EXPECT_THAT(refusal_of_shape("[0]", "[65,65]"), HasSubstr("ends at byte 65")) << "an empty one too";
}

TEST(SafetensorsLies, Overlaps) {
  const auto two = [](int begin, int end) {
    return refusal(fmt::format(R"({{"a":{{"dtype":"U8","shape":[8],"data_offsets":[8,16]}},)"
                               R"("b":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
                               end - begin, begin, end));
  };
  EXPECT_EQ(two(0, 8), "(accepted)");
  EXPECT_EQ(two(16, 24), "(accepted)");
  EXPECT_EQ(two(12, 12), "(accepted)") << "an empty tensor covers nothing";
  for (const auto& [begin, end] : {std::pair{8, 16}, {0, 9}, {15, 16}, {10, 12}, {0, 64}}) {
    EXPECT_THAT(two(begin, end), AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("overlap")))
        << begin << " " << end;
  }
}

}  // namespace
}  // namespace steadfast
