// What the text tests share: the small tokenizer of tests/golden/text, as JSON and as GGUF, and random texts.
#pragma once

#include <ctime>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "support/bytes.h"
#include "support/gguf_builder.h"
#include "text/tokenizer.h"

namespace steadfast::test {

// Fails the test where the file is absent or not JSON.
nlohmann::json read_json(const std::string& path);
std::string golden_path(const std::string& name);  // of tests/golden/text
std::string shared_path(const std::string& name);  // of the data that is not in the repository

const nlohmann::json& sample_json();
Tokenizer tokenizer_of(const nlohmann::json& json);
Tokenizer sample_tokenizer();

// The metadata of a GGUF file with the same tokens and merges.
GgufBuilder gguf_of(const nlohmann::json& json, const std::string& pre);

// Processor seconds since it was made: bounds on them hold on a busy machine too.
class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t start_ = std::clock();
};

using Dice = std::mt19937_64;
std::size_t roll(Dice& dice, std::size_t sides);
// Words, spaces, added tokens, letters of many scripts, any code points.
std::string random_text(Dice& dice, std::size_t parts);
// Any bytes, mostly not UTF-8.
std::string random_bytes(Dice& dice, std::size_t count);

}  // namespace steadfast::test
