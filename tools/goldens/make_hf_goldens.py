#!/usr/bin/env python3
"""Writes tests/golden/<name>/ for every model of hf_models.py: config.json, model.safetensors (bf16, A_log float32),
logits.npy (float32 [tokens, vocab], computed in float32 from those weights) and golden.json (ids, greedy tokens after
them, and the gap between the two best logits of each). Usage: make_hf_goldens.py OUT [NAME ...]"""

import json
import os
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

from hf_models import MODELS

CLASSES = {"hybrid": ("Qwen3_5ForCausalLM", "Qwen3_5TextConfig"), "llama": ("LlamaForCausalLM", "LlamaConfig"),
           "qwen2": ("Qwen2ForCausalLM", "Qwen2Config"), "qwen3": ("Qwen3ForCausalLM", "Qwen3Config")}
GREEDY = 32


def build(family, config, seed):
    """A float32 model whose weights are random bf16 values, scaled so that every path shows in the logits."""
    model_class, config_class = (getattr(transformers, name) for name in CLASSES[family])
    torch.manual_seed(seed)
    model = model_class(config_class(**config, attn_implementation="eager")).float().eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("A_log"):
                p.copy_(torch.rand_like(p) * 3 - 2.5)
                continue
            if name.endswith("dt_bias"):
                p.copy_(torch.rand_like(p) * 4 - 4)
            elif "norm" in name:
                p.add_(torch.randn_like(p) * 0.1)
            elif name.endswith("bias"):
                p.copy_(torch.randn_like(p) * 0.2)
            elif "conv1d" in name:
                p.copy_(torch.randn_like(p) * 0.4)
            elif "embed_tokens" in name or "lm_head" in name:
                p.copy_(torch.randn_like(p) * (0.25 if config["tie_word_embeddings"] else 0.5))
            else:
                p.copy_(torch.randn_like(p) * 1.2 * p.shape[1] ** -0.5)
            p.copy_(p.to(torch.bfloat16).float())
    return model


def multimodal(state, config):
    """The same text model as a multimodal checkpoint holds it, with vision and MTP tensors that a reader must skip."""
    h, i, d = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    out = {name.replace("model.", "model.language_model.", 1): value for name, value in state.items()}
    shapes = {"model.visual.patch_embed.proj.weight": (16, 3, 2, 4, 4), "model.visual.patch_embed.proj.bias": (16,),
              "model.visual.blocks.0.attn.qkv.weight": (48, 16), "model.visual.merger.linear_fc2.weight": (h, 32),
              "mtp.fc.weight": (h, 2 * h), "mtp.norm.weight": (h,), "mtp.pre_fc_norm_embedding.weight": (h,),
              "mtp.pre_fc_norm_hidden.weight": (h,), "mtp.layers.0.input_layernorm.weight": (h,),
              "mtp.layers.0.post_attention_layernorm.weight": (h,), "mtp.layers.0.mlp.gate_proj.weight": (i, h),
              "mtp.layers.0.mlp.up_proj.weight": (i, h), "mtp.layers.0.mlp.down_proj.weight": (h, i),
              "mtp.layers.0.self_attn.q_proj.weight": (2 * config["num_attention_heads"] * d, h),
              "mtp.layers.0.self_attn.k_proj.weight": (config["num_key_value_heads"] * d, h),
              "mtp.layers.0.self_attn.v_proj.weight": (config["num_key_value_heads"] * d, h),
              "mtp.layers.0.self_attn.o_proj.weight": (h, config["num_attention_heads"] * d),
              "mtp.layers.0.self_attn.q_norm.weight": (d,), "mtp.layers.0.self_attn.k_norm.weight": (d,)}
    for name, shape in shapes.items():
        out[name] = (torch.randn(shape) * 0.1).to(torch.bfloat16)
    outer = {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "image_token_id": 188,
             "video_token_id": 189, "vision_start_token_id": 186, "vision_end_token_id": 187,
             "tie_word_embeddings": config["tie_word_embeddings"], "text_config": {**config, "mtp_num_hidden_layers": 1},
             "vision_config": {"depth": 1, "hidden_size": 16, "model_type": "qwen3_5"}}
    return out, outer


def stored_config(model, config, family):
    """The plain configuration as the class prints it, without the class's long tail of defaults."""
    full = model.config.to_dict()
    keep = set(config) | {"layer_types", "model_type", "head_dim", "partial_rotary_factor"}
    out = {"architectures": [CLASSES[family][0]]}
    out.update({key: full.get(key, config.get(key)) for key in sorted(keep) if key in full or key in config})
    out["dtype"] = "bfloat16"
    return out


@torch.no_grad()
def write(name, out, seed):
    family, config, extra = MODELS[name]
    model = build(family, config, seed)
    ids = torch.randint(0, config["vocab_size"], (1, extra["tokens"]))
    logits = model(ids, use_cache=False).logits[0]
    greedy, gaps, text = [], [], ids
    for _ in range(GREEDY):
        top = model(text, use_cache=False).logits[0, -1].topk(2)
        greedy.append(int(top.indices[0]))
        gaps.append(float(top.values[0] - top.values[1]))
        text = torch.cat([text, top.indices[:1][None]], 1)
    state = {n: p.to(torch.float32 if n.endswith("A_log") else torch.bfloat16) for n, p in model.state_dict().items()}
    if config["tie_word_embeddings"]:
        state.pop("lm_head.weight", None)
    stored = stored_config(model, config, family)
    if extra.get("multimodal"):
        state, stored = multimodal(state, stored)
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    save_file({n: t.contiguous() for n, t in sorted(state.items())}, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    np.save(os.path.join(folder, "logits.npy"), logits.numpy())
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(stored, f, indent=1)
        f.write("\n")
    golden = {"ids": ids[0].tolist(), "greedy": greedy, "greedy_gap": gaps, "transformers": transformers.__version__, "torch": torch.__version__}
    with open(os.path.join(folder, "golden.json"), "w", encoding="utf-8") as f:
        json.dump(golden, f)
        f.write("\n")
    size = sum(os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder))
    print(f"{name}: {size / 1e6:.2f} MB, logits std {logits.std():.2f}, smallest gap {min(gaps):.4f}", flush=True)


def main():
    torch.set_num_threads(1)
    out, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    for name in names:
        write(name, out, 1000 + list(MODELS).index(name))


if __name__ == "__main__":
    main()
