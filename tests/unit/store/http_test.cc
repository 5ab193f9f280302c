// Downloads from a server on this machine: whole, continued, cut, redirected, too long, refused.
#include "store/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "local_hub.h"
#include "support/temp_folder.h"

namespace steadfast {
namespace {

using test::Collector;
using test::LocalHub;
using testing::AllOf;
using testing::HasSubstr;

class HttpTest : public testing::Test {
 protected:
  HttpTest() : body_(300'000, '\0') {
    for (std::size_t i = 0; i < body_.size(); ++i) body_[i] = static_cast<char>(i * i % 251);
    digest_ = test::sha256(body_);
    hub_.serve("/file", body_);
  }
  Download to(const std::string& path) const { return {hub_.url(path), {}, folder_.path() / "out", 1'000'000, {}, {}}; }
  std::string out() const { return test::read_text(folder_.path() / "out"); }
  bool is_empty() const { return std::filesystem::is_empty(folder_.path()); }

  std::string body_;
  std::string digest_;
  test::TempFolder folder_;
  LocalHub hub_;
  Collector collector_;
};

TEST_F(HttpTest, FetchesAndDigestsAFile) {
  hub_.start();
  const auto record = http_download(to("/file"), collector_);
  ASSERT_TRUE(record) << record.message();
  EXPECT_EQ(out(), body_);
  EXPECT_EQ(record->name, "out");
  EXPECT_EQ(record->bytes, body_.size());
  EXPECT_EQ(record->sha256, digest_);
  EXPECT_EQ(collector_.last_done, body_.size());
  EXPECT_EQ(collector_.last_total, body_.size());
}

TEST_F(HttpTest, AnEmptyFileIsAFile) {
  hub_.serve("/empty", "");
  hub_.start();
  const auto record = http_download(to("/empty"), collector_);
  ASSERT_TRUE(record) << record.message();
  EXPECT_EQ(record->bytes, 0u);
  EXPECT_EQ(out(), "");
}

TEST_F(HttpTest, ContinuesAPartWhoseDigestIsKnown) {
  hub_.start();
  folder_.write("out.part", body_.substr(0, 100'000));
  Download download = to("/file");
  download.sha256 = digest_;
  const auto record = http_download(download, collector_);
  ASSERT_TRUE(record) << record.message();
  EXPECT_EQ(hub_.last_range(), "bytes=100000-");
  EXPECT_EQ(out(), body_);
  EXPECT_EQ(hub_.requests(), 1);
  ASSERT_TRUE(http_download(download, collector_));
  EXPECT_EQ(hub_.requests(), 1) << "a whole file with its digest is kept";
}

TEST_F(HttpTest, WithoutADigestItStartsAgain) {
  hub_.start();
  folder_.write("out.part", "something else");
  ASSERT_TRUE(http_download(to("/file"), collector_));
  EXPECT_EQ(hub_.last_range(), "");
  EXPECT_EQ(out(), body_);
}

TEST_F(HttpTest, StartsAgainWhereTheServerKnowsNoRanges) {
  hub_.server().Get("/plain", [this](const httplib::Request& request, httplib::Response& response) {
    const_cast<httplib::Request&>(request).ranges.clear();
    response.status = 200;
    response.set_content(body_, "application/octet-stream");
  });
  hub_.start();
  folder_.write("out.part", body_.substr(0, 1000));
  Download download = to("/plain");
  download.sha256 = digest_;
  const auto record = http_download(download, collector_);
  ASSERT_TRUE(record) << record.message();
  EXPECT_EQ(out(), body_);
}

TEST_F(HttpTest, APartThatIsTooLongOrWrongIsThrownAway) {
  hub_.start();
  Download download = to("/file");
  download.sha256 = digest_;
  folder_.write("out.part", body_ + "and more");
  ASSERT_TRUE(http_download(download, collector_)) << "the range is past the end: HTTP 416";
  EXPECT_EQ(out(), body_);
  std::filesystem::remove(folder_.path() / "out");
  folder_.write("out.part", std::string(1000, 'x'));
  EXPECT_THAT(http_download(download, collector_).message(), HasSubstr("SHA-256"));
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(http_download(download, collector_));
}

TEST_F(HttpTest, RefusesAnotherDigestOrSize) {
  hub_.start();
  Download download = to("/file");
  download.sha256 = std::string(64, '0');
  EXPECT_THAT(http_download(download, collector_).message(), AllOf(HasSubstr(digest_), HasSubstr("removed")));
  EXPECT_TRUE(is_empty());
  download.sha256 = {};
  download.bytes = body_.size() + 1;
  EXPECT_THAT(http_download(download, collector_).message(), HasSubstr("300000 bytes came where 300001"));
  EXPECT_TRUE(is_empty());
}

TEST_F(HttpTest, ATransferThatBreaksIsContinuedNextTime) {
  std::atomic<bool> broken = true;
  hub_.server().Get("/breaks", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content_provider(body_.size(), "application/octet-stream",
                                  [&](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                                    if (broken && offset >= 100'000) return false;
                                    sink.write(body_.data() + offset, std::min<std::size_t>(length, 50'000));
                                    return true;
                                  });
  });
  hub_.start();
  Download download = to("/breaks");
  EXPECT_THAT(http_download(download, collector_).message(), HasSubstr("run the same command again"));
  EXPECT_TRUE(is_empty()) << "without a digest nothing could be continued";
  download.sha256 = digest_;
  EXPECT_FALSE(http_download(download, collector_));
  EXPECT_EQ(test::read_text(folder_.path() / "out.part"), body_.substr(0, 100'000));
  broken = false;
  ASSERT_TRUE(http_download(download, collector_));
  EXPECT_EQ(hub_.last_range(), "bytes=100000-");
  EXPECT_EQ(out(), body_);
}

TEST_F(HttpTest, StopsAtTheLimit) {
  hub_.server().Get("/endless", [](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider("application/octet-stream", [](std::size_t, httplib::DataSink& sink) {
      const std::string piece(10'000, 'x');
      return sink.write(piece.data(), piece.size());
    });
  });
  hub_.start();
  EXPECT_THAT(http_download(to("/endless"), collector_).message(), HasSubstr("limit of 1000000 bytes"));
  EXPECT_TRUE(is_empty());
  Download known = to("/file");
  known.bytes = 2'000'000;
  EXPECT_THAT(http_download(known, collector_).message(), HasSubstr("limit of 1000000 bytes"));
  EXPECT_THAT(http_get(hub_.url("/endless"), {}, 5'000).message(), HasSubstr("longer than 5000 bytes"));
}

TEST_F(HttpTest, SaysWhyAServerRefuses) {
  for (const int code : {401, 403, 404, 429, 500}) {
    hub_.server().Get("/status/" + std::to_string(code), [code](const httplib::Request&, httplib::Response& response) {
      response.status = code;
      response.set_content("body of an error", "text/plain");
    });
  }
  hub_.start();
  const auto refusal = [&](int code) {
    return http_download(to("/status/" + std::to_string(code)), collector_).message();
  };
  EXPECT_THAT(refusal(401), HasSubstr("HF_TOKEN"));
  EXPECT_THAT(refusal(403), HasSubstr("HF_TOKEN"));
  EXPECT_THAT(refusal(404), HasSubstr("check the name"));
  EXPECT_THAT(refusal(429), HasSubstr("later"));
  EXPECT_THAT(refusal(500), HasSubstr("HTTP 500"));
  EXPECT_TRUE(is_empty());
  EXPECT_THAT(http_get("http://127.0.0.1:1/", {}, 10).message(), HasSubstr("cannot be reached"));
  EXPECT_THAT(http_get("ftp://127.0.0.1/", {}, 10).message(), HasSubstr("https"));
  EXPECT_THAT(http_get("file:///etc/passwd", {}, 10).message(), HasSubstr("https"));
}

TEST_F(HttpTest, FollowsRedirectsToHttpAloneAndKeepsTheTokenAtHome) {
  LocalHub other;
  other.serve("/blob", body_);
  other.start();
  hub_.server().Get("/moved",
                    [&](const httplib::Request&, httplib::Response& r) { r.set_redirect(other.url("/blob")); });
  hub_.server().Get("/leak",
                    [](const httplib::Request&, httplib::Response& r) { r.set_redirect("file:///etc/passwd"); });
  hub_.server().Get("/loop",
                    [this](const httplib::Request&, httplib::Response& r) { r.set_redirect(hub_.url("/loop")); });
  hub_.start();
  Download download = to("/moved");
  download.token = "secret";
  ASSERT_TRUE(http_download(download, collector_));
  EXPECT_EQ(out(), body_);
  EXPECT_EQ(hub_.last_authorization(), "Bearer secret");
  EXPECT_EQ(other.last_authorization(), "") << "another port is another server";
  EXPECT_FALSE(http_get(hub_.url("/leak"), {}, 100'000));
  EXPECT_FALSE(http_get(hub_.url("/loop"), {}, 100'000));
  EXPECT_THAT(http_get("http://192.0.2.1/", "secret", 10).message(), HasSubstr("unencrypted"));
}

TEST_F(HttpTest, AFolderThatCannotBeWrittenIsSaid) {
  hub_.start();
  Download download = to("/file");
  download.target = folder_.path() / "no/such/out";
  EXPECT_THAT(http_download(download, collector_).message(), HasSubstr("cannot be written"));
}

TEST_F(HttpTest, AFullDiskIsSaid) {
  hub_.start();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto record = http_download(to("/file"), collector_);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(record.message(), HasSubstr("free space"));
  EXPECT_TRUE(is_empty());
}

TEST(SplitUrl, TakesHttpAlone) {
  const auto parts = split_url("https://host.example/a/b%20c.gguf?download=true#x");
  ASSERT_TRUE(parts);
  EXPECT_TRUE(parts->secure);
  EXPECT_FALSE(parts->loopback);
  EXPECT_EQ(parts->last, "b%20c.gguf");
  EXPECT_TRUE(split_url("http://[::1]:80/x")->loopback);
  EXPECT_FALSE(split_url("http://127.0.0.1.example/x")->loopback);
  for (const char* bad : {"file:///x", "ftp://h/x", "x", "", "https://", "http://h:999999/"})
    EXPECT_FALSE(split_url(bad)) << bad;
}

}  // namespace
}  // namespace steadfast
