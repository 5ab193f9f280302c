// `pull` from end to end against a server on this machine: hub models and URLs, stored, kept, replaced, refused.
#include "store/pull.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "local_hub.h"
#include "store/record.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

namespace fs = std::filesystem;
using test::LocalHub;
using testing::AllOf;
using testing::HasSubstr;

const std::string kWeights = "GGUF" + std::string(200'000, 'w');
const std::string kConfig = R"({"model_type":"llama"})";

class PullTest : public testing::Test {
 protected:
  // Serves org/name with these weights (their digest in the listing) at commit c1.
  void serve_model(const std::string& weights) {
    hub_.serve(
        "/api/models/org/name/revision/main",
        fmt::format(R"({{"sha":"c1","siblings":[{{"rfilename":"config.json","size":{}}},{{"rfilename":"README.md",)"
                    R"("size":1}},{{"rfilename":"model.safetensors","size":{},"lfs":{{"sha256":"{}"}}}}]}})",
                    kConfig.size(), kWeights.size(), test::sha256(kWeights)));
    hub_.serve("/org/name/resolve/c1/config.json", kConfig);
    hub_.serve("/org/name/resolve/c1/model.safetensors", weights);
  }
  Result<fs::path> run(const std::string& what) {
    request_.what = what;
    return pull(request_, store_, {hub_.url(), token_}, collector_);
  }

  test::TempFolder folder_;
  Store store_{folder_.path() / "models"};
  LocalHub hub_;
  std::optional<std::string> token_;
  PullRequest request_{"", {}, "main", 1'000'000, false};
  test::Collector collector_;
};

TEST_F(PullTest, AHubsModelIsStoredOnce) {
  serve_model(kWeights);
  hub_.start();
  token_ = "secret";
  const auto first = run("org/name");
  ASSERT_TRUE(first) << first.message();
  EXPECT_EQ(*first, store_.folder("org/name"));
  EXPECT_EQ(hub_.last_authorization(), "Bearer secret");
  EXPECT_EQ(test::read_text(*first / "config.json"), kConfig);
  EXPECT_EQ(test::read_text(*first / "model.safetensors"), kWeights);
  EXPECT_FALSE(fs::exists(*first / "README.md"));
  EXPECT_EQ(read_record(*first)->source, hub_.url("/org/name@c1"));
  EXPECT_EQ(*store_.resolve("org/name"), *first);
  const int requests = hub_.requests();
  ASSERT_TRUE(run("org/name"));
  EXPECT_EQ(hub_.requests(), requests) << "what is stored needs no network";
  EXPECT_THAT(collector_.notes, HasSubstr("stored already"));
}

TEST_F(PullTest, WhatIsDamagedOrForcedIsFetchedAgain) {
  serve_model(kWeights);
  hub_.start();
  const auto folder = run("org/name");
  ASSERT_TRUE(folder) << folder.message();
  fs::resize_file(*folder / "model.safetensors", 10);
  ASSERT_TRUE(run("org/name"));
  EXPECT_EQ(test::read_text(*folder / "model.safetensors"), kWeights);
  const int requests = hub_.requests();
  request_.force = true;
  ASSERT_TRUE(run("org/name"));
  EXPECT_GT(hub_.requests(), requests);
}

TEST_F(PullTest, WrongWeightsAreNotStored) {
  serve_model(std::string(kWeights.size(), 'x'));
  hub_.start();
  EXPECT_THAT(run("org/name").message(), HasSubstr("SHA-256"));
  EXPECT_TRUE(store_.list().empty());
}

TEST_F(PullTest, ALimitHoldsForTheWholeModel) {
  serve_model(kWeights);
  hub_.start();
  request_.most_bytes = kWeights.size() + 1;
  EXPECT_THAT(run("org/name").message(), AllOf(HasSubstr("limit"), HasSubstr("--max-size")));
}

TEST_F(PullTest, AHostileListingFetchesNothing) {
  hub_.serve(
      "/api/models/org/name/revision/main",
      R"({"sha":"c1","siblings":[{"rfilename":"config.json","size":2},{"rfilename":"../../x.safetensors","size":1}]})");
  hub_.start();
  EXPECT_THAT(run("org/name").message(), HasSubstr("leads out"));
  EXPECT_EQ(hub_.requests(), 1);
  EXPECT_THAT(run("org/absent").message(), HasSubstr("HTTP 404"));
}

TEST_F(PullTest, AFileFromAUrlIsNamedAfterItsStem) {
  hub_.serve("/files/tiny.Q8_0.gguf", kWeights);
  hub_.start();
  const std::string url = hub_.url("/files/tiny.Q8_0.gguf");
  const auto folder = run(url + "?download=true");
  ASSERT_TRUE(folder) << folder.message();
  EXPECT_EQ(*store_.resolve("tiny.Q8_0"), *folder / "tiny.Q8_0.gguf");
  EXPECT_EQ(test::read_text(*folder / "tiny.Q8_0.gguf"), kWeights);
  EXPECT_THAT(run(hub_.url("/other/tiny.Q8_0.gguf")).message(), AllOf(HasSubstr("stored from"), HasSubstr("--force")));
  request_.sha256 = test::sha256(kWeights);
  const int requests = hub_.requests();
  ASSERT_TRUE(run(hub_.url("/other/tiny.Q8_0.gguf"))) << "the digest is what counts";
  EXPECT_EQ(hub_.requests(), requests);
  request_.sha256 = std::string(64, '0');
  EXPECT_THAT(run(url).message(), HasSubstr("--force"));
  request_.force = true;
  EXPECT_THAT(run(url).message(), HasSubstr("SHA-256"));
  EXPECT_EQ(test::read_text(*folder / "tiny.Q8_0.gguf"), kWeights) << "the old one stays";
}

TEST_F(PullTest, APageIsNoModel) {
  hub_.serve("/tiny.gguf", "<html>", "text/html");
  hub_.start();
  EXPECT_THAT(run(hub_.url("/tiny.gguf")).message(), HasSubstr("no GGUF file"));
  EXPECT_TRUE(store_.list().empty());
}

TEST_F(PullTest, UrlsThatAreRefused) {
  hub_.start();
  for (const char* path :
       {"/model.bin", "/.gguf", "/..gguf", "/a%2F..%2Fb.gguf", "/a%20b.gguf", "/", "/-x.gguf", "/x%00.gguf"}) {
    EXPECT_FALSE(run(hub_.url(path))) << path;
  }
  EXPECT_THAT(run("http://192.0.2.1/model.gguf").message(), HasSubstr("--sha256"));
  EXPECT_THAT(run("file:///tmp/model.gguf").message(), HasSubstr("not a URL"));
  request_.sha256 = "abc";
  EXPECT_THAT(run(hub_.url("/model.gguf")).message(), HasSubstr("64 hexadecimal"));
  EXPECT_THAT(run("smollm2").message(), HasSubstr("--sha256"));
  EXPECT_EQ(hub_.requests(), 0);
}

TEST_F(PullTest, NamesThatAreNotKnownSayWhatIs) {
  for (const char* name : {"nope", "../x", "a/b/c", "", "a b/c"}) {
    EXPECT_THAT(run(name).message(), AllOf(HasSubstr("known are smollm2"), HasSubstr("ORG/NAME"))) << name;
  }
}

TEST_F(PullTest, WhatPullDidNotMakeIsNotReplaced) {
  serve_model(kWeights);
  hub_.start();
  folder_.write("models/org/name/config.json", "mine");
  EXPECT_THAT(run("org/name").message(), AllOf(HasSubstr("not made by pull"), HasSubstr("--force")));
  folder_.write("models/smollm2/inner/config.json", "mine");
  EXPECT_THAT(run("smollm2").message(), HasSubstr("holds folders"));
}

}  // namespace
}  // namespace steadfast
