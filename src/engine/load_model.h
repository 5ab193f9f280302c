// Opening a model: a folder in Hugging Face or MLX form, or a .gguf file, or "random:SHAPE" (model/random_model.h), to
// weights on a backend, tokenizer, template.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/service.h"
#include "model/model.h"

namespace steadfast {

struct LoadOptions {
  std::string device = "cpu";  // "cuda", "cuda:1"; default_device() (devices.h) finds one
  int threads = 0;             // 0: all cores
  Act act = Act::kInt8;
  std::optional<Act> prompt_act;  // of prompts' rows; default: as act
  std::optional<DType> kv_dtype;  // default: F32 under Act::kF32, else BF16
  bool graphs = true;             // CUDA: rounds of few rows are replayed as graphs; the same bits without
  bool timed = false;             // CUDA: Backend::op_times() measures, and rounds run slower
  std::string isa;                // tests of the row law; "": the widest
  std::function<void(int done, int total)> progress;  // layers packed
  // Put around the backend before weights are loaded: verify plants faults with it. Empty: nothing.
  std::function<std::unique_ptr<Backend>(std::unique_ptr<Backend>)> wrap;
};

struct LoadedModel {
  std::unique_ptr<Backend> backend;  // declared first: freed last
  std::unique_ptr<Model> model;
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  ModelCard card;
  DType kv_dtype = DType::kBF16;
  bool has_generation_config = false;
  std::vector<std::string> notes;  // for `info`: what was skipped and why
};

Result<std::unique_ptr<LoadedModel>> load_model(const std::filesystem::path& path, const LoadOptions& options);

Result<Act> parse_act(const std::string& name, const char* option = "--act");  // "int8", "bf16", "f32"
Result<DType> parse_kv_dtype(const std::string& name);                         // "bf16", "fp8", "f32"
std::string kv_dtype_name(DType dtype);                                        // as parse_kv_dtype() reads it

}  // namespace steadfast
