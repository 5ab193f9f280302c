// The conversion in order: plan, forms, weights, config, text files, a look at the result, the name.
#include "convert/convert.h"

#include "convert/config_file.h"
#include "convert/json_file.h"
#include "convert/plan.h"
#include "convert/shards.h"
#include "convert/text_files.h"
#include "formats/safetensors.h"
#include "model/naming.h"
#include "text/tokenizer.h"

namespace steadfast {
namespace fs = std::filesystem;
namespace {

// OUT.partial, which becomes OUT; removed with all in it unless that happens.
class PartialFolder {
 public:
  static Result<PartialFolder> make(fs::path target) {
    target = target.lexically_normal();
    if (!target.has_filename()) target = target.parent_path();
    std::error_code error;
    if (fs::exists(fs::symlink_status(target, error)))
      return Status::error("{} exists already; name another folder, or remove it first", target.string());
    const fs::path partial = target.string() + ".partial";
    if (fs::exists(fs::symlink_status(partial, error)))
      return Status::error("{} exists: another conversion runs, or one was interrupted; remove it if none runs",
                           partial.string());
    if (!fs::create_directory(partial, error))
      return Status::error("{} cannot be created ({}); does the folder above it exist?", partial.string(),
                           error.message());
    return PartialFolder(target, partial);
  }
  PartialFolder(PartialFolder&& other) noexcept : target_(std::move(other.target_)), path_(std::move(other.path_)) {
    other.path_.clear();
  }
  PartialFolder& operator=(PartialFolder&&) = delete;
  PartialFolder(const PartialFolder&) = delete;
  ~PartialFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }

  const fs::path& path() const { return path_; }
  Status need_space(std::uint64_t bytes) const {
    std::error_code error;
    const auto space = fs::space(path_, error);
    if (error || space.available >= bytes) return Status::ok();
    return Status::error(
        "{} MB are free for {}, and the result needs {} MB; make room, or name a folder on another disk",
        space.available / 1'000'000, target_.string(), bytes / 1'000'000 + 1);
  }
  Status commit() {
    std::error_code error;
    fs::rename(path_, target_, error);
    if (error)
      return Status::error("{} cannot be renamed to {} ({})", path_.string(), target_.string(), error.message());
    path_.clear();
    return Status::ok();
  }

 private:
  PartialFolder(fs::path target, fs::path path) : target_(std::move(target)), path_(std::move(path)) {}
  fs::path target_, path_;
};

Result<std::optional<Recipe>> recipe_of(const ConvertOptions& options, int layers, bool quantises) {
  const auto given = [](Result<Recipe> recipe) -> Result<std::optional<Recipe>> {
    if (!recipe) return recipe.status();
    return std::optional<Recipe>(std::move(*recipe));
  };
  const AffineForm base;
  if (options.recipe.empty()) {
    if (!quantises && !options.bits && !options.group) return std::optional<Recipe>();
    return given(Recipe::uniform({options.bits.value_or(base.bits), options.group.value_or(base.group)}));
  }
  if (options.bits) return Status::error("a recipe chooses the bits; give --bits or --recipe");
  if (Recipe::is_name(options.recipe))
    return given(Recipe::named(options.recipe, options.group.value_or(base.group), layers));
  if (options.group) return Status::error("the recipe's file chooses the groups; leave out --group");
  auto json = read_json_file(options.recipe);
  if (!json) return json.status();
  return given(Recipe::from_json(*json, options.recipe));
}

ConvertReport report_of(const ConversionPlan& plan, const WrittenWeights& written) {
  ConvertReport report{
      .tensors = written.tensors, .shards = written.shards, .bytes = written.bytes, .notes = plan.notes};
  double numbers = 0;
  for (const TensorJob& job : plan.jobs) {
    numbers += static_cast<double>(job.source->elements());
    if (job.form) ++(job.kept ? report.kept : report.quantised);
  }
  if (numbers > 0) report.bits_per_weight = 8.0 * static_cast<double>(written.bytes) / numbers;
  return report;
}

Status check_result(const fs::path& folder, const ModelConfig& source) {
  auto config = config_from_folder(folder);
  if (!config) return config.status();
  if (auto status = same_model(*config, source); !status) return status;
  std::error_code error;
  if (!fs::exists(folder / "tokenizer.json", error)) return Status::ok();
  return Tokenizer::from_folder(folder).status();
}

// What the two kinds of source have in common, and the steps that they share.
struct Conversion {
  const ConvertOptions& options;
  const TensorSource& source;
  const ModelConfig& model;
  ConversionPlan plan;
  std::optional<Recipe> recipe;

  Status choose(bool quantises) {
    auto chosen = recipe_of(options, model.layers, quantises);
    if (!chosen) return chosen.status();
    recipe = std::move(*chosen);
    return choose_forms(plan, recipe ? &*recipe : nullptr, options.requantise);
  }
  nlohmann::json quantization() const { return quantization_of(plan, recipe ? &*recipe : nullptr); }

  Result<ConvertReport> write(const fs::path& out, const nlohmann::json& config,
                              const std::function<Status(const fs::path&)>& write_text_files) {
    auto folder = PartialFolder::make(out);
    if (!folder) return folder.status();
    if (auto status = folder->need_space(bytes_of(plan)); !status) return status;
    if (auto status = write_json(folder->path() / "config.json", config); !status) return status;
    if (auto status = write_text_files(folder->path()); !status) return status;
    if (auto status = check_result(folder->path(), model); !status) return status;
    auto written = write_weights(folder->path(), source, plan, options.shard_bytes, options.progress);
    if (!written) return written.status();
    if (auto status = folder->commit(); !status) return status;
    return report_of(plan, *written);
  }
};

Result<ConvertReport> convert_folder(const fs::path& in, const fs::path& out, const ConvertOptions& options) {
  auto model = config_from_folder(in);
  if (!model) return model.status();
  auto json = read_json_file(in / "config.json");
  if (!json) return json.status();
  for (const char* key : {"quantization", "quantization_config"})
    if (json->contains(key) || (json->contains("text_config") && (*json)["text_config"].contains(key)))
      return Status::error("{} is quantised already (config.json has \"{}\"); take the original checkpoint",
                           in.string(), key);
  auto source = SafetensorsFolder::open(in);
  if (!source) return source.status();
  if (auto naming = Naming::hugging_face(**source); !naming) return naming.status();
  auto plan = plan_folder(**source, *model);
  if (!plan) return plan.status();
  Conversion conversion{options, **source, *model, std::move(*plan), {}};
  if (auto status = conversion.choose(/*quantises=*/true); !status) return status;
  const auto config = mlx_config(std::move(*json), *model, conversion.quantization());
  return conversion.write(out, config, [&](const fs::path& folder) { return copy_text_files(in, folder); });
}

Status write_gguf_text(const GgufFile& file, const fs::path& folder) {
  auto tokenizer = tokenizer_json(file);
  if (!tokenizer) return tokenizer.status();
  if (auto status = write_json(folder / "tokenizer.json", *tokenizer); !status) return status;
  auto config = tokenizer_config(file);
  if (!config) return config.status();
  return write_json(folder / "tokenizer_config.json", *config);
}

Result<ConvertReport> convert_gguf(const fs::path& in, const fs::path& out, const ConvertOptions& options) {
  auto file = GgufFile::open(in);
  if (!file) return file.status();
  auto model = config_from_gguf(**file);
  if (!model) return model.status();
  auto plan = plan_gguf(**file, *model);
  if (!plan) return plan.status();
  Conversion conversion{options, **file, *model, std::move(*plan), {}};
  if (auto status = conversion.choose(/*quantises=*/false); !status) return status;
  if (options.requantise && !conversion.recipe)
    return Status::error("--requantise needs to know the new form; give --bits or --recipe");
  auto config = mlx_config(**file, *model, conversion.quantization());
  if (!config) return config.status();
  auto generation = generation_config(in, *model);
  if (!generation) return generation.status();
  const bool has_tokenizer = (*file)->value("tokenizer.ggml.model") != nullptr;
  if (!has_tokenizer) conversion.plan.notes.push_back("the file has no tokenizer, so the result has none");
  return conversion.write(out, *config, [&](const fs::path& folder) {
    if (auto status = write_json(folder / "generation_config.json", *generation); !status) return status;
    return has_tokenizer ? write_gguf_text(**file, folder) : Status::ok();
  });
}

}  // namespace

Result<ConvertReport> convert_model(const fs::path& in, const fs::path& out, const ConvertOptions& options) {
  std::error_code error;
  return fs::is_directory(in, error) ? convert_folder(in, out, options) : convert_gguf(in, out, options);
}

}  // namespace steadfast
