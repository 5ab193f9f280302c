// `pull`: from what a user names to a model in the store. A known name, ORG/NAME of a hub, or the URL of a .gguf file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "store/hub.h"
#include "store/reporter.h"
#include "store/store.h"

namespace steadfast {

struct PullRequest {
  std::string what;
  std::optional<std::string> sha256;  // of a URL's file
  std::string revision = "main";      // of a hub's model
  std::uint64_t most_bytes = 0;       // of the whole model
  bool force = false;                 // fetch again, and replace what is stored
};

// The model's folder. What is stored and whole (its record's sizes hold) is not fetched again, and needs no network.
Result<std::filesystem::path> pull(const PullRequest& request, const Store& store, const Hub& hub, Reporter& reporter);

}  // namespace steadfast
