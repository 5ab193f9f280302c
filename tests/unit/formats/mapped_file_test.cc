// Mapped files: what cannot be mapped is refused with what to do; released pages read the same again.
#include "formats/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "support/bytes.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

using testing::HasSubstr;

TEST(MappedFile, RefusesWhatIsNotAFile) {
  const test::TempFolder folder;
  EXPECT_THAT(MappedFile::open(folder.path() / "absent").message(), HasSubstr("no such file"));
  EXPECT_THAT(MappedFile::open(folder.path()).message(), HasSubstr("is a folder"));
  EXPECT_THAT(MappedFile::open(folder.write("empty", std::string_view())).message(), HasSubstr("is empty"));
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(pipe).message(), HasSubstr("not a regular file"));
  EXPECT_THAT(MappedFile::open("/dev/zero").message(), HasSubstr("not a regular file"));
  std::filesystem::create_symlink("loop", folder.path() / "loop");
  EXPECT_THAT(MappedFile::open(folder.path() / "loop").message(), HasSubstr("form a loop"));
}

TEST(MappedFile, FollowsSymbolicLinks) {
  const test::TempFolder folder;
  folder.write("blobs/0123", "content");
  std::filesystem::create_symlink("blobs/0123", folder.path() / "model");
  const auto map = MappedFile::open(folder.path() / "model");
  ASSERT_TRUE(map) << map.message();
  EXPECT_EQ(map->bytes().size(), 7u);
}

TEST(MappedFile, MovingKeepsTheBytes) {
  const test::TempFolder folder;
  auto first = MappedFile::open(folder.write("a", "first"));
  auto second = MappedFile::open(folder.write("b", "second!"));
  ASSERT_TRUE(first && second);
  const std::byte* address = first->bytes().data();
  MappedFile moved = std::move(*first);
  EXPECT_EQ(moved.bytes().data(), address);
  moved = std::move(*second);
  EXPECT_EQ(moved.bytes().size(), 7u);
}

// Pages of `part` that this process has mapped.
std::size_t resident(std::span<const std::byte> part) {
  std::size_t total = 0;
  FILE* maps = std::fopen("/proc/self/smaps", "r");
  char line[512];
  bool inside = false;
  while (maps != nullptr && std::fgets(line, sizeof(line), maps) != nullptr) {
    unsigned long begin = 0;
    unsigned long end = 0;
    unsigned long kilobytes = 0;
    if (std::sscanf(line, "%lx-%lx ", &begin, &end) == 2)
      inside = begin == reinterpret_cast<std::uintptr_t>(part.data());
    if (inside && std::sscanf(line, "Rss: %lu kB", &kilobytes) == 1) total += kilobytes * 1024;
  }
  if (maps != nullptr) std::fclose(maps);
  return total;
}

TEST(MappedFile, ReleaseGivesPagesBackAndReadingStaysLegal) {
  const test::TempFolder folder;
  test::Bytes content(64 * 4096 + 100);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * 7);
  const auto map = MappedFile::open(folder.write("pages", content));
  ASSERT_TRUE(map) << map.message();
  EXPECT_EQ(resident(map->bytes()), 0u) << "opening reads nothing";
  map->will_need(map->bytes());
  EXPECT_TRUE(std::equal(content.begin(), content.end(), map->bytes().begin()));
  EXPECT_GE(resident(map->bytes()), content.size());
  map->release(map->bytes().subspan(1, content.size() - 1));
  const std::size_t kept = resident(map->bytes());
  EXPECT_GT(kept, 0u) << "the pages at the ends are only partly inside";
  EXPECT_LE(kept, 2u * 4096);
  map->release(map->bytes().subspan(10, 20));
  map->release({});
  EXPECT_TRUE(std::equal(content.begin(), content.end(), map->bytes().begin()));
}

}  // namespace
}  // namespace steadfast
