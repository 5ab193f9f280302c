// Hugging Face names to MLX's, in the order of mlx-lm's own steps (model-spec 1.9). The MTP head, which mlx-lm drops,
// is kept as language_model.mtp.*; its norms are in the convention of the others, as in every checkpoint of this form.
#include <algorithm>

#include "convert/plan.h"

namespace steadfast {
namespace {

bool is_float(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }

bool is_dropped(const std::string& name, bool tied) {
  for (const char* prefix : {"vision_tower", "visual.", "model.visual", "multi_modal_projector"})
    if (name.starts_with(prefix)) return true;
  return name.ends_with("rotary_emb.inv_freq") || (tied && name.ends_with("lm_head.weight"));
}

std::string hybrid_name(std::string name) {
  constexpr std::string_view kOuter = "model.language_model";
  if (name.starts_with(kOuter)) return "language_model.model" + name.substr(kOuter.size());
  return name.starts_with("language_model.") ? name : "language_model." + name;
}

// Zero-centred norms (model-spec 1.3); linear_attn.norm is none.
bool is_centred_norm(const TensorView& tensor) {
  if (tensor.shape.size() != 1) return false;
  for (const char* end :
       {"layernorm.weight", "model.norm.weight", "language_model.norm.weight", "q_norm.weight", "k_norm.weight",
        "mtp.norm.weight", "pre_fc_norm_embedding.weight", "pre_fc_norm_hidden.weight"})
    if (tensor.name.ends_with(end)) return true;
  return false;
}

bool is_convolution(const TensorView& tensor) {
  return tensor.name.ends_with("conv1d.weight") && tensor.shape.size() == 3;
}

// Convolutions that end in their taps are Hugging Face's, and its norms are w for 1 + w; MLX's end in 1.
bool has_unconverted(const TensorSource& source) {
  for (const std::string& name : source.names()) {
    const TensorView* tensor = source.find(name);
    if (is_convolution(*tensor) && tensor->shape[2] != 1) return true;
  }
  return false;
}

Result<TensorJob> job_of(const TensorView& tensor, bool hybrid, bool unconverted) {
  const std::string& name = tensor.name;
  if (name.ends_with(".scales") || name.ends_with("weight_scale_inv") || name.ends_with(".qweight") ||
      !is_float(tensor.dtype))
    return Status::error(
        "tensor {} is {}: only unquantised F32, F16 and BF16 folders are converted; take the original checkpoint", name,
        info(tensor.dtype).name);
  TensorJob job;
  const std::string path = hybrid ? hybrid_name(name) : name;
  const auto dot = path.rfind('.');
  const bool suffixed = path.ends_with(".weight") || path.ends_with(".bias");
  job.module = suffixed ? path.substr(0, dot) : path;
  job.suffix = suffixed ? path.substr(dot) : "";
  job.source = &tensor;
  job.shape = tensor.shape;
  job.is_matrix = job.suffix == ".weight" && tensor.shape.size() == 2 && !name.ends_with("conv1d.weight");
  if (!hybrid) return job;
  // [channels, 1, taps] and [channels, taps, 1] are the same bytes.
  if (is_convolution(tensor) && tensor.shape[1] == 1) std::swap(job.shape[1], job.shape[2]);
  if (unconverted && is_centred_norm(tensor)) job.change = Change::kAddOne;
  return job;
}

}  // namespace

Result<ConversionPlan> plan_folder(const TensorSource& source, const ModelConfig& config) {
  const bool hybrid = !config.recurrent.empty(), unconverted = hybrid && has_unconverted(source);
  ConversionPlan plan;
  int dropped = 0;
  for (const std::string& name : source.names()) {
    if (is_dropped(name, config.tied)) {
      ++dropped;
      continue;
    }
    auto job = job_of(*source.find(name), hybrid, unconverted);
    if (!job) return job.status();
    plan.jobs.push_back(std::move(*job));
  }
  if (dropped > 0)
    plan.notes.push_back(
        fmt::format("{} tensors left out: vision, rotary tables, or a head that is the embedding", dropped));
  return plan;
}

}  // namespace steadfast
