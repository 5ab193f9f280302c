// Reads NumPy's .npy files of little-endian float32 matrices in C order, as the goldens are stored.
#pragma once

#include <filesystem>
#include <vector>

#include "base/status.h"

namespace steadfast::test {

struct NpyMatrix {
  std::size_t rows = 0, columns = 0;
  std::vector<float> values;
};

Result<NpyMatrix> read_npy(const std::filesystem::path& path);

}  // namespace steadfast::test
