// steadfast_test_server: the server over the fake service, for tests in other languages. Prints "port N", serves until
// standard input ends. Options: --key KEY, --tools json|xml, --thinking, --streams N.
#include <cstdio>
#include <string>

#include "fake_service.h"
#include "server/server.h"

int main(int argc, char** argv) {
  steadfast::testing::FakeOptions fake;
  steadfast::ServerOptions options;
  options.port = 0;
  options.shutdown_seconds = 5;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--thinking") {
      fake.opens_thinking = true;
      continue;
    }
    if (name == "--key") {
      options.api_keys.push_back(value);
    } else if (name == "--tools") {
      fake.tool_style = value;
    } else if (name == "--streams") {
      options.streams = std::stoi(value);
    } else {
      std::fprintf(stderr, "unknown option %s\n", name.c_str());
      return 2;
    }
    ++i;
  }
  steadfast::testing::FakeService service(fake);
  auto server = steadfast::ApiServer::start(service, options);
  if (!server) {
    std::fprintf(stderr, "%s\n", server.message().c_str());
    return 1;
  }
  std::printf("port %d\n", (*server)->port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  (*server)->shutdown();
  return 0;
}
