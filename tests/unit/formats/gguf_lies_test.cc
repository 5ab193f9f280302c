// GGUF files that lie: each lie is refused with a sentence that names the file and what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "formats/gguf.h"
#include "support/gguf_builder.h"

namespace steadfast {
namespace {

using test::Bytes;
using test::GgufBuilder;
using test::GgufEntry;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

std::string refusal(const Bytes& bytes) {
  const auto file = GgufFile::from_bytes(bytes, "lie.gguf");
  if (file) return "(accepted)";
  EXPECT_THAT(file.message(), testing::StartsWith("lie.gguf: "));
  EXPECT_THAT(file.message(), testing::Not(HasSubstr("\n")));
  return file.message();
}

std::string refusal(const GgufBuilder& builder) { return refusal(builder.build()); }

// A file with one tensor entry.
std::string refusal(GgufEntry entry) { return refusal(GgufBuilder().add_entry(std::move(entry))); }

GgufEntry floats(const std::string& name, std::uint64_t count, std::optional<std::uint64_t> offset = {}) {
  return {name, {count}, 0, offset, Bytes(count * 4)};
}

TEST(GgufLies, EveryTruncationIsRefused) {
  GgufBuilder builder;
  builder.add_kv("general.architecture", "llama").add_kv("tokens", std::vector<std::string>{"a", "bc", "def"});
  builder.add_kv("f", 1.5).add_kv("b", true);
  builder.add_entry(floats("a", 5)).add_tensor("q", DType::kQ4_1, {2, 32}, std::vector<float>(64, 0.5f));
  const Bytes whole = builder.build();
  ASSERT_TRUE(GgufFile::from_bytes(whole, "whole.gguf"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes part(whole.begin(),
                     whole.begin() + static_cast<std::ptrdiff_t>(size));  // exact heap size: ASan sees reads past it
    EXPECT_NE(refusal(part), "(accepted)") << size << " of " << whole.size() << " bytes";
  }
}

TEST(GgufLies, MagicAndVersion) {
  EXPECT_THAT(refusal(Bytes(64)), HasSubstr("is not a GGUF file"));
  EXPECT_THAT(refusal(GgufBuilder().set_version(1)), HasSubstr("version 1"));
  EXPECT_THAT(refusal(GgufBuilder().set_version(4)), HasSubstr("version 4"));
  EXPECT_THAT(refusal(GgufBuilder().set_version(0x03000000)), HasSubstr("big-endian"));
}

TEST(GgufLies, CountsBeyondTheFile) {
  EXPECT_THAT(refusal(GgufBuilder().set_counts(0, kHuge)), HasSubstr("metadata keys, more than the file can hold"));
  EXPECT_THAT(refusal(GgufBuilder().set_counts(0, std::uint64_t{1} << 40)), HasSubstr("metadata keys"));
  EXPECT_THAT(refusal(GgufBuilder().set_counts(kHuge, 0)), HasSubstr("tensors, more than the file can hold"));
  EXPECT_THAT(refusal(GgufBuilder().add_kv("a", 1).set_counts(3, 1)),
              HasSubstr("3 tensors, more than the file can hold"));
  EXPECT_THAT(refusal(GgufBuilder().add_kv("a", 1).add_entry(floats("t", 64)).set_counts(1, 2)), HasSubstr("lie.gguf"));
}

TEST(GgufLies, ArrayCounts) {
  for (const std::uint32_t type : {0u, 4u, 8u, 9u, 12u}) {
    for (const std::uint64_t count : {kHuge, kHuge / 8, kHuge / 8 + 2, std::uint64_t{1} << 61, std::uint64_t{1000}}) {
      Bytes value;
      test::append(value, type);
      test::append(value, count);
      value.resize(value.size() + 200);
      EXPECT_THAT(refusal(GgufBuilder().add_raw_kv("list", 9, value)), HasSubstr("more than the file can hold"))
          << type << " x " << count;
    }
  }
}

TEST(GgufLies, TooManyArrayElementsInAll) {
  GgufBuilder builder;
  builder.add_kv("a", std::vector<std::uint8_t>(1u << 24)).add_kv("b", std::vector<std::uint8_t>{1});
  EXPECT_THAT(refusal(builder), AllOf(HasSubstr("'b'"), HasSubstr("array elements")));
}

TEST(GgufLies, StringLengths) {
  for (const std::uint64_t length : {kHuge, kHuge - 7, std::uint64_t{1} << 63, std::uint64_t{5}}) {
    Bytes value;
    test::append(value, length);
    test::append_text(value, "four");
    EXPECT_THAT(refusal(GgufBuilder().add_raw_kv("text", 8, value)), HasSubstr("ends inside a string of 'text'"));
  }
}

TEST(GgufLies, DeepArrays) {
  Bytes value;
  for (int depth = 0; depth < 100'000; ++depth) {
    test::append(value, std::uint32_t{9});
    test::append(value, std::uint64_t{1});
  }
  value.resize(value.size() + 64);
  EXPECT_THAT(refusal(GgufBuilder().add_raw_kv("deep", 9, value)), HasSubstr("nests arrays deeper"));
}

TEST(GgufLies, ValueTypes) {
  EXPECT_THAT(refusal(GgufBuilder().add_raw_kv("x", 13, Bytes(16))), HasSubstr("unknown value type 13"));
  EXPECT_THAT(refusal(GgufBuilder().add_raw_kv("x", 0xFFFFFFFF, Bytes(16))), HasSubstr("unknown value type"));
  Bytes list;
  test::append(list, std::uint32_t{77});
  test::append(list, std::uint64_t{0});
  EXPECT_THAT(refusal(GgufBuilder().add_raw_kv("x", 9, list)), HasSubstr("unknown value type 77"));
  EXPECT_THAT(refusal(GgufBuilder().add_raw_kv("x", 7, Bytes(1, std::byte{2}))), HasSubstr("neither 0 nor 1"));
}

TEST(GgufLies, KeyNames) {
  EXPECT_THAT(refusal(GgufBuilder().add_kv("", 1)), HasSubstr("metadata key 0"));
  EXPECT_THAT(refusal(GgufBuilder().add_kv("bad\xC3", 1)), HasSubstr("'bad\\xC3'"));
  EXPECT_THAT(refusal(GgufBuilder().add_kv("a\033[2J", 1)), HasSubstr("'a\\x1B[2J'"));
  EXPECT_THAT(refusal(GgufBuilder().add_kv(std::string(65536, 'k'), 1)), HasSubstr("65535 bytes"));
  EXPECT_THAT(refusal(GgufBuilder().add_kv("same", 1).add_kv("same", 2)), HasSubstr("'same' is there twice"));
}

TEST(GgufLies, TensorNames) {
  EXPECT_THAT(refusal(floats("", 8)), HasSubstr("tensor 0"));
  EXPECT_THAT(refusal(floats("\xED\xA0\x80", 8)), HasSubstr("printable UTF-8"));
  EXPECT_THAT(refusal(floats(std::string("a\0b", 3), 8)), HasSubstr("'a\\x00b'"));
  EXPECT_THAT(refusal(floats(std::string(65, 'n'), 8)), HasSubstr("64 bytes"));
  EXPECT_EQ(refusal(floats(std::string(64, 'n'), 8)), "(accepted)");
  EXPECT_THAT(refusal(GgufBuilder().add_entry(floats("w", 8)).add_entry(floats("w", 8))),
              HasSubstr("'w' is there twice"));
}

TEST(GgufLies, Shapes) {
  EXPECT_THAT(refusal({"w", {1, 1, 1, 1, 1}, 0, {}, Bytes(64)}), HasSubstr("5 dimensions"));
  EXPECT_THAT(refusal({"w", {4, 0}, 0, {}, Bytes(64)}), HasSubstr("an extent of 0"));
  EXPECT_THAT(refusal({"w", {kHuge}, 0, {}, Bytes(64)}), HasSubstr("an extent of 18446744073709551615"));
  const std::uint64_t half = std::uint64_t{1} << 32;
  EXPECT_THAT(refusal({"w", {half, half}, 0, {}, Bytes(64)}), HasSubstr("cannot hold"));
  EXPECT_THAT(refusal({"w", {half, half, half, half}, 0, {}, Bytes(64)}), HasSubstr("cannot hold"));
  EXPECT_THAT(refusal({"w", {std::uint64_t{1} << 62}, 0, {}, Bytes(64)}), HasSubstr("cannot hold")) << "bytes overflow";
  EXPECT_THAT(refusal({"w", {31}, 3, {}, Bytes(64)}), HasSubstr("blocks of 32"));
  EXPECT_THAT(refusal({"w", {16, 2}, 2, {}, Bytes(64)}), HasSubstr("blocks of 32"))
      << "rows, not the whole, are blocks";
}

TEST(GgufLies, TensorTypes) {
  EXPECT_THAT(refusal({"blk.0.w", {256}, 12, {}, Bytes(144)}),
              AllOf(HasSubstr("'blk.0.w'"), HasSubstr("Q4_K"), HasSubstr("Q4_0, Q4_1 and Q8_0 are supported")));
  EXPECT_THAT(refusal({"w", {4}, 26, {}, Bytes(16)}), HasSubstr("I32"));
  EXPECT_THAT(refusal({"w", {4}, 999, {}, Bytes(16)}), HasSubstr("number 999"));
}

TEST(GgufLies, Alignments) {
  const auto aligned = [](auto alignment) {
    return GgufBuilder().add_kv("general.alignment", alignment).add_entry(floats("w", 8));
  };
  EXPECT_EQ(refusal(aligned(std::uint32_t{32})), "(accepted)");
  for (const std::uint32_t bad : {0u, 1u, 4u, 12u, 33u}) {
    EXPECT_THAT(refusal(aligned(bad)), HasSubstr("general.alignment")) << bad;
  }
  EXPECT_THAT(refusal(aligned(std::uint64_t{1} << 63)), HasSubstr("general.alignment"));
  EXPECT_THAT(refusal(aligned(-8)), HasSubstr("general.alignment"));
  EXPECT_THAT(refusal(aligned("32")), HasSubstr("general.alignment"));
  EXPECT_THAT(refusal(aligned(std::uint32_t{0xFFFFFFF8})), HasSubstr("beyond the file's end"));
}

TEST(GgufLies, Offsets) {
  EXPECT_THAT(refusal(floats("w", 8, 4)), HasSubstr("not a multiple of the alignment 32"));
  EXPECT_THAT(refusal(floats("w", 8, 32)), HasSubstr("beyond the file's end"));
  EXPECT_THAT(refusal(floats("w", 8, kHuge - 31)), HasSubstr("beyond the file's end"));
  EXPECT_THAT(refusal(floats("w", 8, std::uint64_t{1} << 63)), HasSubstr("beyond the file's end"));
  EXPECT_THAT(refusal({"w", {std::uint64_t{1} << 60}, 0, {}, Bytes(64)}), HasSubstr("beyond the file's end"));
}

TEST(GgufLies, Overlaps) {
  const auto two = [](std::uint64_t first, std::uint64_t second) {
    return GgufBuilder()
        .add_entry(floats("a", 16, first))
        .add_entry(floats("b", 16, second))
        .add_entry(floats("c", 16, 128));
  };
  EXPECT_EQ(refusal(two(0, 64)), "(accepted)");
  EXPECT_EQ(refusal(two(64, 0)), "(accepted)");
  EXPECT_THAT(refusal(two(0, 0)), HasSubstr("overlap"));
  EXPECT_THAT(refusal(two(0, 32)), AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("overlap")));
  EXPECT_THAT(refusal(two(32, 0)), HasSubstr("overlap"));
  EXPECT_THAT(refusal(two(0, 96)), HasSubstr("overlap"));
}

}  // namespace
}  // namespace steadfast
