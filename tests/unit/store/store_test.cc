// The store: which names are names, listing, and what a name resolves to; digests and records.
#include "store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/digest.h"
#include "store/record.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(StoreNames, AreNarrow) {
  for (const char* good : {"smollm2", "a", "Org/Model-1.5_b", "0", "a..b"}) EXPECT_TRUE(is_store_name(good)) << good;
  for (const char* bad : {"",     "/",  "a/",   "/a",  "a/b/c", "..",  ".",        ".a",  "a/..", "../a",
                          "a/.b", "-a", "a/-b", "a b", "a\\b",  "a\n", "\xC3\xA9", "a:b", "a@b",  "~"}) {
    EXPECT_FALSE(is_store_name(bad)) << bad;
  }
  EXPECT_FALSE(is_store_name(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_store_name(std::string(128, 'a')));
  EXPECT_FALSE(is_store_name(std::string(129, 'a')));
}

TEST(Store, ListsModelsByName) {
  const test::TempFolder folder;
  const Store store(folder.path() / "models");
  EXPECT_TRUE(store.list().empty()) << "a store that is not there is empty";
  folder.write("models/smol/model.gguf", "12345");
  folder.write("models/org/big/config.json", "{}");
  folder.write("models/org/big/model.safetensors", "123");
  folder.write("models/.partial/half/model.gguf", "1");
  folder.write("models/stray.txt", "1");
  std::filesystem::create_directories(folder.path() / "models/empty");
  const auto models = store.list();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "org/big");
  EXPECT_EQ(models[0].bytes, 5u);
  EXPECT_EQ(models[1].name, "smol");
  EXPECT_EQ(models[1].bytes, 5u);
}

TEST(Store, ResolvesToWhatAReaderOpens) {
  const test::TempFolder folder;
  const Store store(folder.path());
  folder.write("one/model.gguf", "x");
  folder.write("one/.steadfast.json", "{}");
  folder.write("org/hf/config.json", "{}");
  folder.write("org/hf/extra.gguf", "x");
  folder.write("words/tokenizer.json", "{}");
  folder.write("two/a.gguf", "x");
  folder.write("two/b.gguf", "x");
  EXPECT_EQ(*store.resolve("one"), folder.path() / "one/model.gguf");
  EXPECT_EQ(*store.resolve("org/hf"), folder.path() / "org/hf");
  EXPECT_EQ(*store.resolve("words"), folder.path() / "words");
  EXPECT_THAT(store.resolve("two").message(), AllOf(HasSubstr("2 .gguf files"), HasSubstr("a.gguf")));
}

TEST(Store, AnErrorSaysWhatIsStoredAndWhatToDo) {
  const test::TempFolder folder;
  const Store store(folder.path());
  EXPECT_THAT(store.resolve("x").message(), AllOf(HasSubstr("nothing is stored"), HasSubstr("steadfast pull smollm2")));
  folder.write("one/model.gguf", "x");
  folder.write("org/two/config.json", "x");
  for (const char* name : {"x", "", "../one", "one/..", "/one", "one/model.gguf"}) {
    EXPECT_THAT(store.resolve(name).message(),
                AllOf(HasSubstr("stored are: one, org/two"), HasSubstr("steadfast pull")))
        << name;
  }
}

TEST(Digest, IsSha256) {
  const test::TempFolder folder;
  // The test vectors of FIPS 180-2 for "abc" and for a million times "a".
  EXPECT_EQ(*sha256_of_file(folder.write("abc", "abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(*sha256_of_file(folder.write("a", std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_FALSE(sha256_of_file(folder.path() / "absent"));
  EXPECT_FALSE(sha256_of_file(folder.path())) << "a folder";
  EXPECT_FALSE(is_sha256(std::string(64, 'A')));
  EXPECT_FALSE(is_sha256(std::string(63, 'a')));
}

TEST(Record, ComesBackAndChecksSizes) {
  const test::TempFolder folder;
  const ModelRecord record{"somewhere", {{"a", 3, "aa"}, {"b", 0, "bb"}}};
  ASSERT_TRUE(write_record(folder.path(), record));
  const auto read = read_record(folder.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->source, "somewhere");
  ASSERT_EQ(read->files.size(), 2u);
  EXPECT_EQ(read->files[0].name, "a");
  EXPECT_EQ(read->files[0].bytes, 3u);
  EXPECT_EQ(read->files[1].sha256, "bb");
  EXPECT_FALSE(sizes_hold(folder.path(), record));
  folder.write("a", "123");
  folder.write("b", "");
  EXPECT_TRUE(sizes_hold(folder.path(), record));
  folder.write("a", "12");
  EXPECT_FALSE(sizes_hold(folder.path(), record));
  EXPECT_FALSE(sizes_hold(folder.path(), {"somewhere", {}}));
}

TEST(Record, DamagedOnesAreNone) {
  const test::TempFolder folder;
  EXPECT_FALSE(read_record(folder.path()));
  for (const char* text :
       {"", "[]", "{", "{}", R"({"source":1,"files":[]})", R"({"source":"a","files":{}})",
        R"({"source":"a","files":[1]})", R"({"source":"a","files":[{"name":"a","bytes":-1,"sha256":""}]})"}) {
    folder.write(".steadfast.json", text);
    EXPECT_FALSE(read_record(folder.path())) << text;
  }
}

}  // namespace
}  // namespace steadfast
