// Loading in order: configuration, backend, weights, tokenizer, template, sampling defaults.
#include "engine/load_model.h"

#include <sys/stat.h>

#include "engine/devices.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "model/fields.h"
#include "model/random_model.h"

namespace steadfast {
namespace {

namespace fs = std::filesystem;

std::int64_t modified(const fs::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::int64_t>(info.st_mtime) : 0;
}

Status read_defaults(const fs::path& folder, LoadedModel& loaded) {
  std::error_code code;
  const fs::path path = folder / "generation_config.json";
  const std::string random = "random:", name = path.string();
  const bool made = name.starts_with(random);
  if (!made && !fs::exists(path, code)) return Status::ok();
  auto json = read_json_file(path);
  if (!json) return json.status();
  Fields fields(*json, "generation_config.json");
  SamplingParams& sampling = loaded.card.defaults;
  sampling.temperature = static_cast<float>(fields.number("temperature", 0, 100, 1.0));
  sampling.top_k = fields.integer("top_k", -1, 1 << 30, 0);
  sampling.top_p = static_cast<float>(fields.number("top_p", 0, 1, 1.0));
  sampling.min_p = static_cast<float>(fields.number("min_p", 0, 1, 0.0));
  sampling.repetition_penalty = static_cast<float>(fields.number("repetition_penalty", 1e-3, 1e3, 1.0));
  if (!fields.boolean("do_sample", true)) sampling.temperature = 0;
  loaded.has_generation_config = true;
  return fields.status();
}

Status load_weights(const TensorSource& source, const Naming& naming, ModelConfig config, const LoadOptions& options,
                    LoadedModel& loaded) {
  if (auto status = loaded.backend->check_model(shapes_of(config, loaded.kv_dtype)); !status) return status;
  auto weights = ModelWeights::load(config, source, naming, *loaded.backend, options.progress);
  if (!weights) return weights.status();
  loaded.card.digest = weights->digest();
  loaded.notes = weights->notes();
  loaded.card.family = config.family;
  loaded.card.vocab_size = config.vocab;
  loaded.card.window = config.max_positions;
  loaded.card.eos_ids = config.eos;
  loaded.model = std::make_unique<Model>(std::move(config), std::move(*weights), *loaded.backend);
  return Status::ok();
}

void take_template(Result<ChatTemplate> chat, LoadedModel& loaded) {
  if (chat)
    loaded.chat_template = std::move(*chat);
  else
    loaded.notes.push_back("no chat template: " + chat.message());
}

Status load_folder(const fs::path& folder, const LoadOptions& options, LoadedModel& loaded) {
  auto config = config_from_folder(folder);
  if (!config) return config.status();
  auto source = SafetensorsFolder::open(folder);
  if (!source) return source.status();
  auto naming = Naming::hugging_face(**source);
  if (!naming) return naming.status();
  if (auto status = load_weights(**source, *naming, std::move(*config), options, loaded); !status) return status;
  std::error_code code;
  if (fs::exists(folder / "tokenizer.json", code)) {
    auto tokenizer = Tokenizer::from_folder(folder);
    if (!tokenizer) return tokenizer.status();
    loaded.tokenizer = std::move(*tokenizer);
    take_template(ChatTemplate::from_folder(folder), loaded);
  } else {
    loaded.notes.push_back("no tokenizer files: the model can be scored and can generate from ids");
  }
  if (auto status = read_defaults(folder, loaded); !status) return status;
  loaded.card.created = modified(folder / "config.json");
  loaded.card.name = fs::canonical(folder, code).filename().string();
  return Status::ok();
}

Status load_random(const std::string& preset, const LoadOptions& options, LoadedModel& loaded) {
  auto random = make_random_model(preset);
  if (!random) return random.status();
  auto config = config_from_json(random->config);
  if (!config) return config.status();
  auto naming = Naming::hugging_face(*random->tensors);
  if (!naming) return naming.status();
  if (auto status = load_weights(*random->tensors, *naming, std::move(*config), options, loaded); !status)
    return status;
  loaded.notes.push_back("random weights: speed and equalities are those of the shape, what it writes means nothing");
  loaded.card.name = "random:" + preset;
  return Status::ok();
}

Status load_gguf(const fs::path& path, const LoadOptions& options, LoadedModel& loaded) {
  auto file = GgufFile::open(path);
  if (!file) return file.status();
  auto config = config_from_gguf(**file);
  if (!config) return config.status();
  const Naming naming = Naming::gguf(!config->recurrent.empty());  // before the config is moved from
  if (auto status = load_weights(**file, naming, std::move(*config), options, loaded); !status) return status;
  if ((*file)->value("tokenizer.ggml.model") != nullptr) {
    auto tokenizer = Tokenizer::from_gguf(**file);
    if (!tokenizer) return tokenizer.status();
    loaded.tokenizer = std::move(*tokenizer);
    if ((*file)->value("tokenizer.chat_template") != nullptr) take_template(ChatTemplate::from_gguf(**file), loaded);
  }
  if (auto status = read_defaults(path.parent_path(), loaded); !status) return status;
  loaded.card.created = modified(path);
  loaded.card.name = path.stem().string();
  return Status::ok();
}

}  // namespace

Result<Act> parse_act(const std::string& name, const char* option) {
  for (const Act act : {Act::kInt8, Act::kBF16, Act::kF32})
    if (name == to_string(act)) return act;
  return Status::error("{} {}: use int8, bf16 or f32", option, name);
}

Result<DType> parse_kv_dtype(const std::string& name) {
  if (name == "bf16") return DType::kBF16;
  if (name == "f32") return DType::kF32;
  if (name == "fp8") return DType::kF8E4M3;
  return Status::error("--kv-dtype {}: use bf16, fp8 or f32", name);
}

std::string kv_dtype_name(DType dtype) {
  if (dtype == DType::kF32) return "f32";
  return dtype == DType::kF8E4M3 ? "fp8" : "bf16";
}

Result<std::unique_ptr<LoadedModel>> load_model(const fs::path& path, const LoadOptions& options) {
  std::error_code code;
  const std::string random = "random:", name = path.string();
  const bool made = name.starts_with(random);
  if (!made && !fs::exists(path, code)) return Status::error("{} does not exist; is the path right?", path.string());
  auto loaded = std::make_unique<LoadedModel>();
  auto backend = make_backend(options);
  if (!backend) return backend.status();
  loaded->backend = options.wrap ? options.wrap(std::move(*backend)) : std::move(*backend);
  loaded->kv_dtype = options.kv_dtype.value_or(options.act == Act::kF32 ? DType::kF32 : DType::kBF16);
  loaded->card.arithmetic = {loaded->backend->target(), to_string(loaded->backend->act()),
                             to_string(loaded->backend->prompt_act()), kv_dtype_name(loaded->kv_dtype)};
  const bool folder = fs::is_directory(path, code);
  auto status = made     ? load_random(name.substr(random.size()), options, *loaded)
                : folder ? load_folder(path, options, *loaded)
                         : load_gguf(path, options, *loaded);
  if (!status) return status;
  return loaded;
}

}  // namespace steadfast
