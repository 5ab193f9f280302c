// Models of a Hugging Face hub (or a mirror that speaks its API): the listing of ORG/NAME at one revision, and fetching
// the files that a model needs. The listing is untrusted: its names, sizes and digests are checked before anything is
// fetched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/reporter.h"
#include "store/staging.h"

namespace steadfast {

struct Hub {
  std::string endpoint;  // without a slash at its end
  std::optional<std::string> token;
};

struct HubFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::optional<std::string> sha256;  // of the files that the hub keeps by digest: the weights
};

struct HubListing {
  std::string commit;          // the revision, pinned
  std::vector<HubFile> files;  // config.json, generation_config.json, tokenizer files, safetensors and their index
};

// `name` is ORG/NAME, `revision` a branch, tag or commit.
Result<HubListing> list_hub(const Hub& hub, const std::string& name, const std::string& revision);

// The same from the text of the hub's answer.
Result<HubListing> parse_listing(std::string_view text, const std::string& name);

// Fetches every file into the staging folder; files that an interrupted pull left whole are kept.
Result<ModelRecord> fetch_hub(const Hub& hub, const std::string& name, const HubListing& listing,
                              std::uint64_t most_bytes, const Staging& staging, Reporter& reporter);

}  // namespace steadfast
