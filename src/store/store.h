// The folder of stored models: ROOT/NAME/ holds one model, in Hugging Face form or as one .gguf file. Names come from
// users and other machines: NAME or ORG/NAME of [A-Za-z0-9._-], so that no name leads out of the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace steadfast {

// At most 128 bytes; no part starts with a dot or a hyphen.
bool is_store_name(std::string_view name);

struct StoredModel {
  std::string name;
  std::uint64_t bytes = 0;  // of all its files
};

class Store {
 public:
  explicit Store(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  // `name` is a store name.
  std::filesystem::path folder(std::string_view name) const;
  // By name. A store that does not exist is empty.
  std::vector<StoredModel> list() const;
  // What a reader opens: the model's folder if it holds config.json or no .gguf, else its only .gguf file. An error
  // lists what is stored.
  Result<std::filesystem::path> resolve(std::string_view name) const;

 private:
  std::filesystem::path root_;
};

}  // namespace steadfast
