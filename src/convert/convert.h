// Conversion of a model to an MLX-affine folder: a Hugging Face folder (BF16, F16, F32) is quantised, a GGUF file's
// quantised tensors are kept to the bit in another order of nibbles (model-spec 3, 4.3).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace steadfast {

struct ConvertOptions {
  // Given: what is unquantised is quantised with these. Neither these nor a recipe: folders take 4 bits in groups of
  // 64, GGUF files keep every tensor as it is.
  std::optional<int> bits = std::nullopt, group = std::nullopt;
  std::string recipe = {};  // a named recipe or a file's path; "": none
  bool requantise = false;  // GGUF: quantised tensors too get new bits
  std::uint64_t shard_bytes = 5'000'000'000;
  std::function<void(int done, int total)> progress = {};  // tensors and modules
};

struct ConvertReport {
  int tensors = 0, shards = 0;
  int quantised = 0, kept = 0;  // matrices newly quantised; matrices whose codes are the source's
  std::uint64_t bytes = 0;
  double bits_per_weight = 0;  // bytes of all tensors over the numbers that they stand for
  std::vector<std::string> notes;
};

// `in`: a folder or a .gguf file. `out` must not exist; it appears when everything in it is written, and nothing is
// left behind on failure. The result is read back: its configuration must equal the source's.
Result<ConvertReport> convert_model(const std::filesystem::path& in, const std::filesystem::path& out,
                                    const ConvertOptions& options);

}  // namespace steadfast
