// The table from canonical module names to GGUF's, and the prefixes of safetensors folders.
#include "model/naming.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace steadfast {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 24> kGgufModules = {{
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"linear_attn.in_proj_qkv", "attn_qkv"},
    {"linear_attn.in_proj_z", "attn_gate"},
    {"linear_attn.in_proj_b", "ssm_beta"},
    {"linear_attn.in_proj_a", "ssm_alpha"},
    {"linear_attn.conv1d", "ssm_conv1d"},
    {"linear_attn.A_log", "ssm_a"},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
    {"linear_attn.norm", "ssm_norm"},
    {"linear_attn.out_proj", "ssm_out"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    {"rope_freqs", "rope_freqs"},
}};

std::string gguf_name(const std::string& canonical, bool hybrid) {
  std::string block, rest = canonical;
  if (canonical.rfind("layers.", 0) == 0) {
    const auto dot = canonical.find('.', 7);
    block = "blk." + canonical.substr(7, dot - 7) + ".";
    rest = canonical.substr(dot + 1);
  }
  if (hybrid && rest == "post_attention_layernorm") return block + "post_attention_norm";
  for (const auto& [ours, theirs] : kGgufModules)
    if (rest == ours) return block + theirs;
  CHECK(false, "no GGUF name for module {}", canonical);
}

}  // namespace

Result<Naming> Naming::hugging_face(const TensorSource& source) {
  for (const char* prefix : {"model.", "model.language_model.", "language_model.model.", ""}) {
    if (source.find(std::string(prefix) + "embed_tokens.weight") == nullptr) continue;
    const char* head = source.find("language_model.lm_head.weight") != nullptr ? "language_model.lm_head" : "lm_head";
    return Naming(false, false, prefix, head);
  }
  return Status::error(
      "the folder's weights hold no embed_tokens.weight under a known prefix; is it a language model?");
}

std::string Naming::module(const std::string& canonical) const {
  if (gguf_) return gguf_name(canonical, hybrid_);
  if (canonical == "lm_head") return head_;
  return body_ + canonical;
}

}  // namespace steadfast
