// safetensors files that are valid, and the writer: what it writes comes back.
#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "support/safetensors_builder.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

using test::Bytes;
using test::SafetensorsBuilder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr DType kStored[] = {DType::kF32, DType::kF16,    DType::kBF16,   DType::kF64,   DType::kBool, DType::kU8,
                             DType::kI8,  DType::kU16,    DType::kI16,    DType::kU32,   DType::kI32,  DType::kU64,
                             DType::kI64, DType::kF8E4M3, DType::kF8E5M2, DType::kF8E8M0};

Bytes counted(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

TEST(Safetensors, KeepsTensorsOfEveryDtypeScalarsAndEmptyOnes) {
  SafetensorsBuilder builder;
  for (const DType dtype : kStored) {
    builder.add_tensor(std::string(info(dtype).name), dtype, {2, 3}, counted(6 * info(dtype).block_bytes));
  }
  builder.add_tensor("scalar", DType::kF32, {}, counted(4)).add_tensor("empty", DType::kF32, {0, 7}, Bytes());
  builder.add_metadata("format", "pt").add_metadata("caf\xC3\xA9", "line\nbreak");
  const Bytes bytes = builder.build();
  const auto file = SafetensorsFile::from_bytes(bytes, "test.safetensors");
  ASSERT_TRUE(file) << file.message();
  EXPECT_EQ((*file)->names().size(), std::size(kStored) + 2);
  EXPECT_EQ((*file)->names().front(), "F32");
  for (const DType dtype : kStored) {
    const TensorView* tensor = (*file)->find(info(dtype).name);
    ASSERT_NE(tensor, nullptr) << info(dtype).name;
    EXPECT_EQ(tensor->dtype, dtype);
    EXPECT_THAT(tensor->shape, ElementsAre(2, 3));
    EXPECT_EQ(Bytes(tensor->data.begin(), tensor->data.end()), counted(6 * info(dtype).block_bytes));
  }
  EXPECT_THAT((*file)->find("scalar")->shape, IsEmpty());
  EXPECT_EQ((*file)->find("scalar")->data.size(), 4u);
  EXPECT_EQ((*file)->find("empty")->data.size(), 0u);
  EXPECT_EQ((*file)->find("absent"), nullptr);
  EXPECT_EQ((*file)->metadata().at("format"), "pt");
  EXPECT_EQ((*file)->metadata().at("caf\xC3\xA9"), "line\nbreak");
  (*file)->release(*(*file)->find("scalar"));
}

// mlx writes null where it has none to write.
TEST(Safetensors, MetadataMayBeNull) {
  const Bytes bytes =
      test::safetensors_bytes(R"({"__metadata__":null,"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", Bytes(1));
  const auto file = SafetensorsFile::from_bytes(bytes, "test.safetensors");
  ASSERT_TRUE(file) << file.message();
  EXPECT_THAT((*file)->names(), ElementsAre("a"));
  EXPECT_TRUE((*file)->metadata().empty());
}

TEST(Safetensors, AcceptsTrailingSpacesGapsAndNoTensors) {
  const Bytes padded = test::safetensors_bytes("{}      ", {});
  EXPECT_TRUE(SafetensorsFile::from_bytes(padded, "padded"));
  const Bytes gap = test::safetensors_bytes(
      R"({"a":{"data_offsets":[8,12],"dtype":"F32","shape":[1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
      counted(16));
  const auto file = SafetensorsFile::from_bytes(gap, "gap");
  ASSERT_TRUE(file) << file.message();
  EXPECT_EQ((*file)->find("a")->data[0], std::byte{8});
}

std::vector<TensorView> views(const Bytes& data) {
  const std::span<const std::byte> all(data);
  return {{"z.weight", DType::kBF16, {3, 5}, all.subspan(1, 30)},
          {"a \"quoted\" \xE2\x82\xAC", DType::kU8, {3}, all.subspan(50, 3)},
          {"scalar", DType::kF32, {}, all.subspan(7, 4)},
          {"empty", DType::kI64, {0}, {}}};
}

TEST(SafetensorsWriter, WhatItWritesComesBack) {
  const test::TempFolder folder;
  const auto path = folder.path() / "out.safetensors";
  const Bytes data = counted(64);
  const auto tensors = views(data);
  const Status written = write_safetensors(path, tensors, {{"format", "pt"}});
  ASSERT_TRUE(written) << written.message();
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.message();
  EXPECT_THAT((*file)->names(), ElementsAre("z.weight", tensors[1].name, "scalar", "empty")) << "the given order";
  for (const TensorView& tensor : tensors) {
    const TensorView* read = (*file)->find(tensor.name);
    ASSERT_NE(read, nullptr) << tensor.name;
    EXPECT_EQ(read->dtype, tensor.dtype);
    EXPECT_EQ(read->shape, tensor.shape);
    EXPECT_TRUE(std::equal(read->data.begin(), read->data.end(), tensor.data.begin(), tensor.data.end()))
        << tensor.name;
  }
  EXPECT_EQ((*file)->metadata().at("format"), "pt");
  const std::string text = test::read_text(path);
  std::uint64_t header = 0;
  std::memcpy(&header, text.data(), sizeof(header));
  EXPECT_EQ((8 + header) % 64, 0u) << "the data starts aligned";
  EXPECT_EQ(text.size(), 8 + header + 37) << "no gaps";
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".partial"));
}

TEST(SafetensorsWriter, RefusesWhatTheFormatCannotHold) {
  const test::TempFolder folder;
  const auto path = folder.path() / "out.safetensors";
  const Bytes data = counted(64);
  const auto refusal = [&](std::vector<TensorView> tensors) { return write_safetensors(path, tensors, {}).message(); };
  const std::span<const std::byte> all(data);
  EXPECT_THAT(refusal({{"q", DType::kQ4_1, {32}, all.first(20)}}), HasSubstr("Q4_1"));
  EXPECT_THAT(refusal({{"a", DType::kU8, {3}, all.first(4)}}), HasSubstr("do not fit"));
  EXPECT_THAT(refusal({{"a", DType::kU8, {-1}, all.first(1)}}), HasSubstr("do not fit"));
  EXPECT_THAT(refusal({{"", DType::kU8, {1}, all.first(1)}}), HasSubstr("rename"));
  EXPECT_THAT(refusal({{"__metadata__", DType::kU8, {1}, all.first(1)}}), HasSubstr("rename"));
  EXPECT_THAT(refusal({{"\xFF", DType::kU8, {1}, all.first(1)}}), HasSubstr("rename"));
  EXPECT_THAT(refusal({{"a", DType::kU8, {1}, all.first(1)}, {"a", DType::kU8, {1}, all.first(1)}}),
              HasSubstr("two tensors"));
  EXPECT_THAT(write_safetensors(path, {}, {{"k", "\xFF"}}).message(), HasSubstr("not UTF-8"));
  EXPECT_THAT(write_safetensors(folder.path() / "no/such/folder", {}, {}).message(), HasSubstr("cannot be created"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SafetensorsWriter, AFullDiskLeavesNothingBehind) {
  const test::TempFolder folder;
  const Bytes data = counted(1 << 20);
  const std::vector<TensorView> tensors = {{"a", DType::kU8, {1 << 20}, data}};
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_safetensors(folder.path() / "out.safetensors", tensors, {});
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(status.message(), HasSubstr("free space"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace steadfast
