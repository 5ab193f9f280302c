// A folder of safetensors shards as one source: which files belong to it, then one table of names over all of them.
#include <algorithm>
#include <set>

#include "formats/mapped_file.h"
#include "formats/safetensors.h"
#include "formats/strict_json.h"
#include "formats/untrusted.h"

namespace steadfast {
namespace fs = std::filesystem;

struct SafetensorsFolder::Impl {
  std::vector<std::shared_ptr<const SafetensorsFile>> shards;
  std::vector<std::string> names;
  std::map<std::string, std::size_t, std::less<>> shard_of;
};

namespace {

constexpr std::size_t kMostIndexBytes = 100'000'000;
constexpr std::size_t kIndexNesting = 16;  // "metadata" may hold anything
constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSuffix = ".safetensors";

bool is_shard_name(std::string_view name) {
  return is_clean_name(name) && name.size() > kSuffix.size() && name.ends_with(kSuffix) && name.front() != '.' &&
         name.find_first_of("/\\") == std::string_view::npos;
}

// Reads "weight_map", skips every other entry.
class IndexReader : public StrictJson {
 public:
  std::map<std::string, std::string> weight_map;  // tensor: shard
  bool found = false;

 private:
  bool in_map() const { return depth() >= 1 && key(0) == "weight_map"; }

  Status malformed() const {
    return Status::error("{}: is not an index (an object whose weight_map maps tensors to files); fetch it again",
                         file());
  }

  Status open(Kind kind) override {
    if (depth() == 0) return kind == Kind::kObject ? Status::ok() : malformed();
    if (!in_map()) return {};
    found = depth() == 1 && kind == Kind::kObject;
    return found ? Status::ok() : malformed();
  }

  Status close(Kind) override { return {}; }

  Status scalar(const JsonScalar& value) override {
    if (depth() == 0) return malformed();
    if (!in_map()) return {};
    const auto* shard = std::get_if<std::string_view>(&value);
    if (depth() != 2 || shard == nullptr) return malformed();
    if (!is_shard_name(*shard)) {
      return Status::error(
          "{}: places tensor {} in {}, which is not the plain name of a .safetensors file; fetch it again", file(),
          shown(key(1)), shown(*shard));
    }
    weight_map.emplace(key(1), *shard);
    return {};
  }
};

Result<IndexReader> read_index(const fs::path& path) {
  const auto map = MappedFile::open(path);
  if (!map) return map.status();
  const auto bytes = map->bytes();
  if (bytes.size() > kMostIndexBytes) {
    return Status::error("{}: is {} bytes long, beyond the limit of {} for an index; fetch it again", path.string(),
                         bytes.size(), kMostIndexBytes);
  }
  IndexReader index;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (auto status = index.walk(text, path.string(), kIndexNesting); !status) return status;
  if (!index.found || index.weight_map.empty()) {
    return Status::error("{}: has no weight_map, or an empty one; fetch it again", path.string());
  }
  return index;
}

// The shards of a folder without an index, by name.
Result<std::vector<std::string>> list_shards(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "model.safetensors", error)) return std::vector<std::string>{"model.safetensors"};
  std::vector<std::string> shards;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("model") && name.ends_with(kSuffix)) shards.push_back(name);
  }
  if (error) return Status::error("{}: cannot be listed ({}); check the folder", folder.string(), error.message());
  std::sort(shards.begin(), shards.end());
  if (shards.empty()) {
    return Status::error(
        "{}: holds no model.safetensors, no index and no model*.safetensors; name a folder with weights",
        folder.string());
  }
  return shards;
}

}  // namespace

SafetensorsFolder::SafetensorsFolder() : impl_(std::make_shared<Impl>()) {}

Result<std::shared_ptr<const SafetensorsFolder>> SafetensorsFolder::open(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return Status::error("{}: is not a folder; name the folder that holds the model", folder.string());
  }
  const fs::path index_path = folder / kIndexName;
  std::map<std::string, std::string> weight_map;
  std::vector<std::string> shard_names;
  if (fs::exists(fs::symlink_status(index_path, error))) {
    auto index = read_index(index_path);
    if (!index) return index.status();
    weight_map = std::move(index->weight_map);
    std::set<std::string> distinct;
    for (const auto& [tensor, shard] : weight_map) distinct.insert(shard);
    shard_names.assign(distinct.begin(), distinct.end());
  } else {
    auto listed = list_shards(folder);
    if (!listed) return listed.status();
    shard_names = std::move(*listed);
  }

  std::shared_ptr<SafetensorsFolder> result(new SafetensorsFolder);
  Impl& impl = *result->impl_;
  for (const std::string& shard : shard_names) {
    auto file = SafetensorsFile::open(folder / shard);
    if (!file) return file.status();
    for (std::string& name : (*file)->names()) {
      const auto [place, fresh] = impl.shard_of.emplace(name, impl.shards.size());
      if (!fresh) {
        return Status::error("{}: tensor {} is in two shards, {} and {}; remove the files that are not of this model",
                             folder.string(), shown(name), shard_names[place->second], shard);
      }
      impl.names.push_back(std::move(name));
    }
    impl.shards.push_back(std::move(*file));
  }
  for (const auto& [tensor, shard] : weight_map) {
    const auto place = impl.shard_of.find(tensor);
    if (place == impl.shard_of.end() || shard_names[place->second] != shard) {
      return Status::error("{}: places tensor {} in {}, which does not hold it; fetch the model again",
                           index_path.string(), shown(tensor), shard);
    }
  }
  return std::shared_ptr<const SafetensorsFolder>(std::move(result));
}

const TensorView* SafetensorsFolder::find(std::string_view name) const {
  const auto place = impl_->shard_of.find(name);
  return place == impl_->shard_of.end() ? nullptr : impl_->shards[place->second]->find(name);
}

std::vector<std::string> SafetensorsFolder::names() const { return impl_->names; }

void SafetensorsFolder::release(const TensorView& tensor) const {
  const auto place = impl_->shard_of.find(tensor.name);
  CHECK(place != impl_->shard_of.end(), "tensor {} is not of this folder", tensor.name);
  impl_->shards[place->second]->release(tensor);
}

void SafetensorsFolder::will_need(const TensorView& tensor) const {
  const auto place = impl_->shard_of.find(tensor.name);
  CHECK(place != impl_->shard_of.end(), "tensor {} is not of this folder", tensor.name);
  impl_->shards[place->second]->will_need(tensor);
}

}  // namespace steadfast
