// What MODEL names on the command line: random weights ("random:SHAPE"), a path as given, else a stored name.
#include <filesystem>

#include "base/config.h"
#include "command.h"
#include "store/store.h"

namespace steadfast {
namespace fs = std::filesystem;

Result<fs::path> resolve_model(const std::string& model) {
  if (model.starts_with("random:")) return fs::path(model);
  std::error_code error;
  const fs::file_status about = fs::status(model, error);
  if (fs::is_directory(about)) return fs::path(model);
  if (fs::is_regular_file(about)) {
    if (fs::path(model).extension() == ".gguf") return fs::path(model);
    return Status::error("{}: is a file but no .gguf; name a .gguf file, or the folder that holds the model", model);
  }
  return Store(config().models()).resolve(model);
}

bool is_stored_name(const std::string& model) {
  std::error_code error;
  return !model.starts_with("random:") && !fs::exists(model, error);
}

}  // namespace steadfast
