// Listing and naming of stored models.
#include "store/store.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace steadfast {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostNameBytes = 128;

bool is_part(std::string_view part) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !part.empty() && part.front() != '.' && part.front() != '-' && std::all_of(part.begin(), part.end(), allowed);
}

// The entries of a folder by name; what cannot be listed counts as empty.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) result.push_back(entry->path());
  std::sort(result.begin(), result.end());
  return result;
}

// Adds the model that `folder` is, if it holds files of its own.
void add_model(std::vector<StoredModel>& models, const fs::path& folder, std::string name) {
  StoredModel model{std::move(name), 0};
  bool any = false;
  for (const fs::path& path : entries(folder)) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) continue;
    any = true;
    const auto bytes = fs::file_size(path, error);
    if (!error) model.bytes += bytes;
  }
  if (any) models.push_back(std::move(model));
}

}  // namespace

bool is_store_name(std::string_view name) {
  const auto slash = name.find('/');
  if (name.size() > kMostNameBytes) return false;
  if (slash == std::string_view::npos) return is_part(name);
  return is_part(name.substr(0, slash)) && is_part(name.substr(slash + 1));
}

fs::path Store::folder(std::string_view name) const {
  CHECK(is_store_name(name), "'{}' is not a name of the store", name);
  return root_ / name;
}

std::vector<StoredModel> Store::list() const {
  std::vector<StoredModel> models;
  std::error_code error;
  for (const fs::path& outer : entries(root_)) {
    const std::string name = outer.filename().string();
    if (!is_store_name(name) || !fs::is_directory(outer, error)) continue;
    add_model(models, outer, name);
    for (const fs::path& inner : entries(outer)) {
      std::string full = name + "/" + inner.filename().string();
      if (is_store_name(full) && fs::is_directory(inner, error)) add_model(models, inner, std::move(full));
    }
  }
  return models;
}

Result<fs::path> Store::resolve(std::string_view name) const {
  const auto models = list();
  const auto known =
      std::any_of(models.begin(), models.end(), [&](const StoredModel& model) { return model.name == name; });
  if (!known) {
    std::vector<std::string> names;
    for (const StoredModel& model : models) names.push_back(model.name);
    const std::string stored =
        names.empty() ? "nothing is stored" : fmt::format("stored are: {}", fmt::join(names, ", "));
    const std::string shown(name.substr(0, kMostNameBytes));
    return Status::error(
        "there is no model '{}': neither a folder, nor a .gguf file, nor a stored name ({}); fetch one with "
        "`steadfast pull smollm2`",
        shown, stored);
  }
  const fs::path model = folder(name);
  std::error_code error;
  if (fs::exists(model / "config.json", error)) return model;
  std::vector<fs::path> files = entries(model);
  std::erase_if(files, [](const fs::path& path) { return path.extension() != ".gguf"; });
  if (files.size() > 1) {
    return Status::error("the stored model '{}' holds {} .gguf files; name one of them by its path, as {}", name,
                         files.size(), files.front().string());
  }
  return files.empty() ? model : files.front();
}

}  // namespace steadfast
