// The hub's API as huggingface_hub uses it: /api/models/ORG/NAME/revision/REV?blobs=true,
// /ORG/NAME/resolve/COMMIT/FILE.
#include "store/hub.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "store/digest.h"
#include "store/http.h"

namespace steadfast {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostListingBytes = 32'000'000;
constexpr std::array<std::string_view, 11> kWanted = {"config.json",
                                                      "generation_config.json",
                                                      "tokenizer.json",
                                                      "tokenizer_config.json",
                                                      "vocab.json",
                                                      "merges.txt",
                                                      "added_tokens.json",
                                                      "special_tokens_map.json",
                                                      "chat_template.json",
                                                      "chat_template.jinja",
                                                      "model.safetensors.index.json"};
constexpr std::string_view kWeights = ".safetensors";
constexpr std::string_view kSecondCopy =
    "consolidated";  // the same weights in another layout, beside model*.safetensors

bool is_plain(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !text.empty() && text.size() <= 200 && text.front() != '.' && std::all_of(text.begin(), text.end(), allowed);
}

// A path that could lead out of the folder, or that no honest listing holds.
bool is_hostile(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\\') != std::string_view::npos) return true;
  if (std::any_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }))
    return true;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const auto part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return true;
    begin = end + 1;
  }
  return false;
}

std::string_view text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? std::string_view(found->get_ref<const std::string&>()) : "";
}

std::optional<std::uint64_t> number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? std::optional(found->get<std::uint64_t>())
                                                              : std::nullopt;
}

Status poor_answer(const std::string& name, std::string_view what) {
  return Status::error("the hub's listing of {} {}; check the setting HF_ENDPOINT", name, what);
}

Result<HubFile> read_file(const Json& entry, const std::string& name) {
  HubFile file{std::string(text_at(entry, "rfilename")), 0, {}};
  const auto bytes = number_at(entry, "size");
  if (!bytes) return poor_answer(name, "gives no size of a file");
  file.bytes = *bytes;
  const auto lfs = entry.find("lfs");
  if (lfs != entry.end() && lfs->is_object()) {
    const auto digest = text_at(*lfs, "sha256");
    if (!is_sha256(digest)) return poor_answer(name, "gives something that is no SHA-256");
    file.sha256 = std::string(digest);
  }
  return file;
}

}  // namespace

Result<HubListing> parse_listing(std::string_view text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  const auto siblings = json.is_object() ? json.find("siblings") : json.end();
  if (!json.is_object() || siblings == json.end() || !siblings->is_array())
    return poor_answer(name, "is not the JSON of a listing");
  HubListing listing{std::string(text_at(json, "sha")), {}};
  if (!is_plain(listing.commit)) return poor_answer(name, "names no commit");
  std::set<std::string> names;
  bool weights = false;
  bool gguf = false;
  for (const Json& entry : *siblings) {
    const std::string_view path = entry.is_object() ? text_at(entry, "rfilename") : "";
    if (is_hostile(path))
      return poor_answer(name, "holds a file name that leads out of the model's folder; nothing was fetched");
    gguf = gguf || path.ends_with(".gguf");
    if (path.find('/') != std::string_view::npos) continue;
    const bool is_weights = path.ends_with(kWeights) && !path.starts_with(kSecondCopy);
    if (!is_weights && std::find(kWanted.begin(), kWanted.end(), path) == kWanted.end()) continue;
    if (!is_plain(path)) return poor_answer(name, "holds weights under a name that is not plain; nothing was fetched");
    auto file = read_file(entry, name);
    if (!file) return file.status();
    if (!names.insert(file->name).second) return poor_answer(name, "holds a file twice");
    weights = weights || is_weights;
    listing.files.push_back(std::move(*file));
  }
  if (!weights && gguf) {
    return Status::error("{} holds .gguf files and no safetensors; give `pull` the URL of the one that is wanted",
                         name);
  }
  if (!weights || names.count("config.json") == 0) {
    return Status::error(
        "{} holds no config.json with *.safetensors, so it is no model that can be run; choose another", name);
  }
  return listing;
}

Result<HubListing> list_hub(const Hub& hub, const std::string& name, const std::string& revision) {
  if (!is_plain(revision)) return Status::error("'{}' is not a revision; give a branch, a tag or a commit", revision);
  const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", hub.endpoint, name, revision);
  const auto text = http_get(url, hub.token, kMostListingBytes);
  if (!text) return text.status();
  return parse_listing(*text, name);
}

Result<ModelRecord> fetch_hub(const Hub& hub, const std::string& name, const HubListing& listing,
                              std::uint64_t most_bytes, const Staging& staging, Reporter& reporter) {
  std::uint64_t total = 0;
  for (const HubFile& file : listing.files) {
    if (file.bytes > most_bytes - total) {
      return Status::error("{} is larger than the limit of {} bytes; raise it with --max-size", name, most_bytes);
    }
    total += file.bytes;
  }
  if (auto status = staging.need_space(total); !status) return status;
  reporter.note(
      fmt::format("fetching {} at {}: {} files, {} MB", name, listing.commit, listing.files.size(), total / 1'000'000));
  ModelRecord record{fmt::format("{}/{}@{}", hub.endpoint, name, listing.commit), {}};
  for (const HubFile& file : listing.files) {
    const Download download{fmt::format("{}/{}/resolve/{}/{}", hub.endpoint, name, listing.commit, file.name),
                            hub.token,
                            staging.folder() / file.name,
                            file.bytes,
                            file.bytes,
                            file.sha256};
    auto fetched = http_download(download, reporter);
    if (!fetched) return fetched.status();
    record.files.push_back(std::move(*fetched));
  }
  return record;
}

}  // namespace steadfast
