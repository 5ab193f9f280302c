// Kinds of tensors are told by the segments of their names.
#include "model/extra_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace steadfast {
namespace {

constexpr std::array kLayerModules = {
    "input_layernorm",  "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
    "self_attn.o_proj", "self_attn.q_norm",         "self_attn.k_norm", "mlp.gate_proj",    "mlp.up_proj",
    "mlp.down_proj"};

bool has_segment(std::string_view name, std::string_view segment) {
  for (auto at = name.find(segment); at != std::string_view::npos; at = name.find(segment, at + 1)) {
    const bool starts = at == 0 || name[at - 1] == '.',
               ends = at + segment.size() == name.size() || name[at + segment.size()] == '.';
    if (starts && ends) return true;
  }
  return false;
}

// A block behind the model's own in a GGUF file.
bool is_extra_block(std::string_view name, int layers) {
  if (!name.starts_with("blk.")) return false;
  int block = 0;
  const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), block);
  return error == std::errc() && block >= layers;
}

bool is_mtp(std::string_view name, const ModelConfig& config, const Naming& naming) {
  return naming.is_gguf() ? is_extra_block(name, config.layers) : has_segment(name, "mtp");
}

enum Kind { kVision, kMtp, kTiedHead, kRotary, kOther, kKinds };

Kind kind_of(std::string_view name, const ModelConfig& config, const Naming& naming) {
  for (const char* segment : {"visual", "vision_tower", "vision_model", "multi_modal_projector"})
    if (has_segment(name, segment)) return kVision;
  if (is_mtp(name, config, naming)) return kMtp;
  if (config.tied && has_segment(name, "lm_head")) return kTiedHead;
  if (name.ends_with("rotary_emb.inv_freq")) return kRotary;
  return kOther;
}

std::string sentence(Kind kind, int count, const std::string& first) {
  const std::string tensors = fmt::format("{} tensor{}", count, count == 1 ? "" : "s");
  switch (kind) {
    case kVision:
      return fmt::format("{} of the vision part skipped ({}, ...): text alone is read", tensors, first);
    case kMtp:
      return fmt::format("{} of the MTP head ({}, ...) kept for drafting; replies do not need them", tensors, first);
    case kTiedHead:
      return fmt::format("{} of {} skipped: the head is tied to the embeddings", tensors, first);
    case kRotary:
      return fmt::format("{} of rotary frequencies skipped: they are computed from the configuration", tensors);
    default:
      return fmt::format("{} not used by this family, first {}", tensors, first);
  }
}

}  // namespace

Status check_mtp_head(const ModelConfig& config, const TensorSource& source, const Naming& naming) {
  if (config.recurrent.empty()) return Status::ok();
  const auto names = source.names();
  const auto first =
      std::find_if(names.begin(), names.end(), [&](const std::string& name) { return is_mtp(name, config, naming); });
  if (first == names.end()) return Status::ok();
  std::vector<std::string> modules;
  if (naming.is_gguf()) {
    for (const char* module : kLayerModules)
      modules.push_back(naming.module(fmt::format("layers.{}.{}", config.layers, module)));
    for (const char* module : {"eh_proj", "enorm", "hnorm"})
      modules.push_back(fmt::format("blk.{}.nextn.{}", config.layers, module));
  } else {
    const std::string prefix = first->starts_with("mtp.") ? "mtp." : first->substr(0, first->find(".mtp.") + 5);
    for (const char* module : kLayerModules) modules.push_back(prefix + "layers.0." + module);
    for (const char* module : {"fc", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"})
      modules.push_back(prefix + module);
  }
  for (const std::string& module : modules) {
    const TensorView* weight = source.find(module + ".weight");
    if (weight == nullptr)
      return Status::error("the model's MTP head lacks tensor {}.weight; is the download complete?", module);
    if (weight->dtype != DType::kU32) continue;
    for (const char* part : {".scales", ".biases"})
      if (source.find(module + part) == nullptr)
        return Status::error("the model's MTP head lacks tensor {}{}; is the download complete?", module, part);
  }
  return Status::ok();
}

std::vector<std::string> notes_on_extra_tensors(const std::vector<std::string>& names, const ModelConfig& config,
                                                const Naming& naming) {
  std::array<int, kKinds> counts = {};
  std::array<std::string, kKinds> firsts;
  for (const std::string& name : names) {
    const Kind kind = kind_of(name, config, naming);
    if (counts[kind]++ == 0) firsts[kind] = name;
  }
  std::vector<std::string> notes;
  for (int kind = 0; kind < kKinds; ++kind)
    if (counts[static_cast<std::size_t>(kind)] > 0)
      notes.push_back(sentence(static_cast<Kind>(kind), counts[static_cast<std::size_t>(kind)],
                               firsts[static_cast<std::size_t>(kind)]));
  return notes;
}

}  // namespace steadfast
