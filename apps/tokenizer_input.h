// What tokenize and detokenize read: a model's tokenizer alone (no weights), text files and JSON files.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "text/tokenizer.h"

namespace steadfast {

// MODEL as on the command line: a folder with tokenizer.json (weights are not needed), a GGUF file, a stored name.
Result<Tokenizer> load_tokenizer(const std::string& model);

// The GGUF file of a folder that holds exactly one; empty otherwise.
std::filesystem::path only_gguf(const std::filesystem::path& folder);

Result<std::string> read_input(const std::string& path);
Result<nlohmann::json> read_json_input(const std::string& path);

}  // namespace steadfast
