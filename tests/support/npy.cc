// The format: magic, version 1, u16 length, a Python dict as text, then the data (numpy.lib.format).
#include "support/npy.h"

#include <cstring>
#include <regex>

#include "support/temp_folder.h"

namespace steadfast::test {

Result<NpyMatrix> read_npy(const std::filesystem::path& path) {
  const std::string file = read_text(path);
  constexpr std::size_t kPreamble = 10;
  if (file.size() < kPreamble || file.compare(0, 8, "\x93NUMPY\x01\x00", 8) != 0)
    return Status::error("{} is not a .npy file of version 1", path.string());
  const std::size_t header = static_cast<unsigned char>(file[8]) + 256u * static_cast<unsigned char>(file[9]);
  const std::string text = file.substr(kPreamble, header);
  std::smatch shape;
  const std::regex form(R"(\{'descr': '<f4', 'fortran_order': False, 'shape': \((\d+), (\d+)\), \}\s*)");
  if (!std::regex_match(text, shape, form))
    return Status::error("{} is not a float32 matrix in C order: {}", path.string(), text);
  NpyMatrix matrix;
  matrix.rows = std::stoul(shape[1]);
  matrix.columns = std::stoul(shape[2]);
  matrix.values.resize(matrix.rows * matrix.columns);
  if (file.size() != kPreamble + header + matrix.values.size() * sizeof(float))
    return Status::error("{} does not hold {} by {} values", path.string(), matrix.rows, matrix.columns);
  std::memcpy(matrix.values.data(), file.data() + kPreamble + header, matrix.values.size() * sizeof(float));
  return matrix;
}

}  // namespace steadfast::test
