// Heads of requests: what is passed on, and what two programs could read in two ways.
#include "server/request_head.h"

#include <gtest/gtest.h>

namespace steadfast {
namespace {

TEST(RequestHead, PassesOnWhatMatters) {
  RequestHead head;
  const auto error = read_request_head(
      "POST /v1/completions?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nRange: bytes=0-\r\nAccept-Encoding: "
      "gzip\r\n"
      "REMOTE_ADDR: 1.2.3.4\r\nX-Empty:\r\nConnection: Keep-Alive, Close\r\n\r\n",
      {}, head);
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v1/completions?x=1");
  EXPECT_EQ(head.content_length, 12);
  EXPECT_TRUE(head.close);
  EXPECT_FALSE(head.chunked);
  EXPECT_EQ(head.text,
            "POST /v1/completions?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nX-Empty:\r\n"
            "Connection: Keep-Alive, Close\r\n\r\n");
}

TEST(RequestHead, OldVersionsCloseAndNeedNoHost) {
  RequestHead head;
  EXPECT_FALSE(read_request_head("GET / HTTP/1.0\r\n\r\n", {}, head));
  EXPECT_TRUE(head.close);
}

struct Refused {
  const char* name;
  std::string text;
  int status;
};

class HeadRefused : public testing::TestWithParam<Refused> {};

TEST_P(HeadRefused, WithItsStatus) {
  RequestHead head;
  const auto error = read_request_head(GetParam().text, {}, head);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status, GetParam().status) << error->message;
}

std::string post(const std::string& headers) { return "POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n"; }

std::string many_headers() {
  std::string text;
  for (int i = 0; i < 101; ++i) text += "X: 1\r\n";
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    All, HeadRefused,
    testing::Values(
        Refused{"noVersion", "GET /\r\n\r\n", 400}, Refused{"fourWords", "GET / x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        Refused{"version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        Refused{"method", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        Refused{"target", "GET http://x/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        Refused{"targetBytes", "GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        Refused{"longTarget", "GET /" + std::string(5000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
        Refused{"noHost", "GET / HTTP/1.1\r\n\r\n", 400}, Refused{"twoHosts", post("Host: b\r\n"), 400},
        Refused{"bareLf", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400}, Refused{"bareCr", post("X: a\rb\r\n"), 400},
        Refused{"nul", post(std::string("X: a\0b\r\n", 8)), 400}, Refused{"noColon", post("X\r\n"), 400},
        Refused{"spaceBeforeColon", post("X : a\r\n"), 400}, Refused{"folded", post("X: a\r\n b\r\n"), 400},
        Refused{"tooMany", post(many_headers()), 431}, Refused{"lengthSign", post("Content-Length: +1\r\n"), 400},
        Refused{"lengthNegative", post("Content-Length: -1\r\n"), 400},
        Refused{"lengthHex", post("Content-Length: 0x1\r\n"), 400},
        Refused{"lengthList", post("Content-Length: 1, 1\r\n"), 400},
        Refused{"lengthEmpty", post("Content-Length:\r\n"), 400},
        Refused{"lengthHuge", post("Content-Length: 9999999999999999999\r\n"), 400},
        Refused{"twoLengths", post("Content-Length: 1\r\nContent-Length: 1\r\n"), 400},
        Refused{"lengthAndChunked", post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400},
        Refused{"otherCoding", post("Transfer-Encoding: gzip, chunked\r\n"), 400},
        Refused{"chunkedTwice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
        Refused{"chunkedOld", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace steadfast
