// Tokenizer and template files of a result folder.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/gguf.h"

namespace steadfast {

// tokenizer.json with the tokens, merges, types and pre-tokenizer of the GGUF file's metadata: Tokenizer::from_folder
// gives the same ids as Tokenizer::from_gguf. Tokens of type "unused" are left out.
Result<nlohmann::ordered_json> tokenizer_json(const GgufFile& file);

// tokenizer_config.json: special tokens by their texts, the chat template.
Result<nlohmann::ordered_json> tokenizer_config(const GgufFile& file);

// Copies what a Hugging Face folder has of tokenizer, template and generation files.
Status copy_text_files(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace steadfast
