// Listings of a hub: the files that are wanted, and every way a listing can lie.
#include "store/hub.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace steadfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kDigest(64, 'a');

std::string listing(const std::string& files) { return fmt::format(R"({{"sha":"c0ffee","siblings":[{}]}})", files); }

std::string file(const std::string& name) { return fmt::format(R"({{"rfilename":"{}","size":5}})", name); }

std::string refusal(const std::string& text) {
  const auto parsed = parse_listing(text, "org/name");
  return parsed ? "(accepted)" : parsed.message();
}

// A listing with this entry beside what makes a model.
std::string refusal_of(const std::string& entry) {
  return refusal(listing(file("config.json") + "," + file("model.safetensors") + "," + entry));
}

TEST(HubListing, TakesWhatAModelNeeds) {
  std::string files;
  for (const char* name :
       {"README.md", "config.json", "tokenizer.json", "chat_template.jinja", "pytorch_model.bin",
        "onnx/model.safetensors", "model.safetensors.index.json", "evil.py", "consolidated.safetensors"}) {
    files += file(name) + ",";
  }
  files += fmt::format(
      R"({{"rfilename":"model-00001-of-00001.safetensors","size":9,"lfs":{{"sha256":"{}","size":9}}}})", kDigest);
  const auto parsed = parse_listing(listing(files), "org/name");
  ASSERT_TRUE(parsed) << parsed.message();
  EXPECT_EQ(parsed->commit, "c0ffee");
  std::vector<std::string> names;
  for (const HubFile& entry : parsed->files) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors.index.json",
                                 "model-00001-of-00001.safetensors"));
  EXPECT_EQ(parsed->files.back().bytes, 9u);
  EXPECT_EQ(parsed->files.back().sha256, kDigest);
  EXPECT_EQ(parsed->files.front().sha256, std::nullopt);
}

TEST(HubListing, RefusesNamesThatLeadOutOfTheFolder) {
  for (const char* name : {"../model.safetensors", "/etc/x.safetensors", "a/../../b", "a//b", "./config.json", "..", "",
                           "a\\\\..\\\\b.safetensors", "x\\u0000.safetensors", "x\\n.safetensors", "dir/", "/"}) {
    EXPECT_THAT(refusal_of(file(name)), HasSubstr("leads out")) << name;
  }
  EXPECT_THAT(refusal_of("17"), HasSubstr("leads out"));
  EXPECT_THAT(refusal_of(R"({"size":1})"), HasSubstr("leads out"));
  EXPECT_THAT(refusal_of(file("a b.safetensors")), HasSubstr("not plain"));
  EXPECT_THAT(refusal_of(file("a?b.safetensors")), HasSubstr("not plain"));
  EXPECT_THAT(refusal_of(file(".safetensors")), HasSubstr("not plain"));
}

TEST(HubListing, RefusesPoorAnswers) {
  for (const char* text : {"", "[]", "{}", "null", "{\"siblings\":{}}", "<html>", R"({"sha":"a","siblings":)"}) {
    EXPECT_THAT(refusal(text), HasSubstr("HF_ENDPOINT")) << text;
  }
  EXPECT_THAT(refusal(R"({"siblings":[]})"), HasSubstr("no commit"));
  EXPECT_THAT(refusal(R"({"sha":"../x","siblings":[]})"), HasSubstr("no commit"));
  EXPECT_THAT(refusal(listing("")), HasSubstr("no model"));
  EXPECT_THAT(refusal(listing(file("config.json"))), HasSubstr("no model"));
  EXPECT_THAT(refusal(listing(file("model.safetensors"))), HasSubstr("no model"));
  EXPECT_THAT(refusal(listing(file("model.Q4_0.gguf"))), HasSubstr("URL of the one that is wanted"));
  EXPECT_THAT(refusal_of(file("config.json")), HasSubstr("twice"));
  EXPECT_THAT(refusal_of(R"({"rfilename":"tokenizer.json"})"), HasSubstr("no size"));
  EXPECT_THAT(refusal_of(R"({"rfilename":"tokenizer.json","size":-1})"), HasSubstr("no size"));
  EXPECT_THAT(refusal_of(R"({"rfilename":"tokenizer.json","size":1,"lfs":{"sha256":"../../x"}})"),
              HasSubstr("no SHA-256"));
  EXPECT_THAT(refusal(std::string(1'000'000, '[')), HasSubstr("HF_ENDPOINT"));
}

TEST(Hub, RefusesRevisionsThatLeaveThePath) {
  for (const char* revision : {"", "../x", "a/b", "a?b", "a b"}) {
    EXPECT_THAT(list_hub({"http://127.0.0.1:1", {}}, "org/name", revision).message(), HasSubstr("not a revision"))
        << revision;
  }
}

}  // namespace
}  // namespace steadfast
