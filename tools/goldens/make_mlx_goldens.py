#!/usr/bin/env python3
"""MLX goldens, made with mlx and mlx-lm on the CPU. OUT/mlx/pack_{bf16,f16}.safetensors: random and special rows
quantised at every bits x group, with the packed words, scales, biases and dequantised values. OUT/mlx-*/: small
quantised models with bits, groups and exceptions mixed per module, and mlx-lm's logits in float32.
OUT/fixture/: prompts, mlx-lm's float32 logits at some rows and greedy replies of tests/fixture/model.
Usage: make_mlx_goldens.py OUT [pack|models|fixture ...]"""

import json
import os
import sys
import tempfile

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model, quantize_model, save_config, save_model
from pathlib import Path

FIXTURE = Path(__file__).resolve().parents[2] / "tests" / "fixture" / "model"


def make_pack(out):
    """w [4, 256] of each dtype: normal; positive only; constant, zero and one-spike groups; small and large values."""
    rng = np.random.default_rng(71)
    w = rng.standard_normal((4, 256)).astype(np.float32)
    w[1] = np.abs(w[1]) + 0.1
    w[2, :64], w[2, 64:128], w[2, 128:192] = 0.5, 0.0, 0.0
    w[2, 130] = -3.0
    w[3, :128] *= 1e-3
    w[3, 128:] *= 50
    for name, dtype in (("bf16", mx.bfloat16), ("f16", mx.float16)):
        source = mx.array(w).astype(dtype)
        tensors = {"w": source}
        for bits in (2, 3, 4, 5, 6, 8):
            for group in (32, 64, 128):
                words, scales, biases = mx.quantize(source, group_size=group, bits=bits)
                values = mx.dequantize(words, scales, biases, group_size=group, bits=bits)
                tensors.update({f"b{bits}.g{group}.{n}": t for n, t in (("weight", words), ("scales", scales), ("biases", biases), ("values", values))})
        mx.save_safetensors(str(out / f"pack_{name}.safetensors"), tensors, metadata={"format": "mlx"})


def random_folder(family, config, seed, folder):
    """A random bf16 checkpoint in Hugging Face form, as the Hugging Face goldens are made."""
    from safetensors.torch import save_file
    import torch

    from make_hf_goldens import build, stored_config

    model = build(family, config, seed)
    state = {n: p.to(torch.float32 if n.endswith("A_log") else torch.bfloat16).contiguous() for n, p in model.state_dict().items()}
    if config["tie_word_embeddings"]:
        state.pop("lm_head.weight", None)
    save_file(state, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    stored = stored_config(model, config, family)
    if family != "hybrid":  # mlx-lm reads the older keys for these
        rope = dict(stored.pop("rope_parameters"))
        stored["rope_theta"] = rope.pop("rope_theta")
        if rope["rope_type"] != "default":
            stored["rope_scaling"] = rope
    else:
        stored = {"model_type": "qwen3_5", "text_config": stored, "tie_word_embeddings": config["tie_word_embeddings"]}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(stored, f)


def mixed(rules, base):
    """A predicate for mlx-lm: the first rule whose text is in the path decides; False leaves the module as it is."""
    def predicate(path, module):
        return next((value for text, value in rules if text in path), base)

    return predicate


def affine(bits, group):
    return {"bits": bits, "group_size": group, "mode": "affine"}


def greedy(model, ids, count, stop=()):
    """(tokens, gaps between the two best logits), one row at a time through mlx-lm's cache."""
    cache, tokens, gaps, row = make_prompt_cache(model), [], [], mx.array([ids])
    for _ in range(count):
        logits = np.array(model(row, cache=cache)[0, -1].astype(mx.float32))
        best = np.argsort(-logits)[:2]
        tokens.append(int(best[0]))
        gaps.append(float(logits[best[0]] - logits[best[1]]))
        if tokens[-1] in stop:
            break
        row = mx.array([[tokens[-1]]])
    return tokens, gaps


def make_models(out):
    from hf_models import LLAMA3, dense, hybrid

    models = {
        "mlx-hybrid-mixed": ("hybrid", hybrid(160, 128, 256, 4, 4, 2, 64, 2, 4, 32, 32), mx.bfloat16, affine(4, 64),
                             [("lm_head", affine(8, 64)), ("embed_tokens", affine(6, 32)), ("in_proj_a", affine(5, 32)), ("in_proj_b", False),
                              ("layers.0.mlp.down_proj", affine(3, 64)), ("layers.1.linear_attn.in_proj_qkv", affine(2, 32)),
                              ("v_proj", affine(6, 128)), ("layers.2.mlp.gate_proj", affine(8, 128)), ("out_proj", affine(5, 64))]),
        "mlx-llama-mixed": ("llama", dense(192, 128, 256, 3, 4, 2, 5e5, rms_norm_eps=1e-5, tie_word_embeddings=True, scaling=LLAMA3),
                            mx.bfloat16, affine(4, 32), [("embed_tokens", affine(8, 64)), ("down_proj", affine(6, 64)),
                                                         ("layers.1.self_attn.v_proj", affine(3, 128)), ("layers.0.self_attn.o_proj", False)]),
        "mlx-qwen3-f16": ("qwen3", dense(160, 128, 192, 2, 4, 2, 1e6, rms_norm_eps=1e-6, head_dim=64), mx.float16, affine(3, 64),
                          [("lm_head", affine(6, 32)), ("k_proj", affine(5, 64)), ("layers.0.mlp.up_proj", affine(2, 32))]),
    }
    for index, (name, (family, config, dtype, base, rules)) in enumerate(models.items()):
        with tempfile.TemporaryDirectory() as source:
            random_folder(family, config, 2000 + index, source)
            model, stored = load_model(Path(source))
        keep = getattr(model, "cast_predicate", lambda path: True)
        model.update(cast(model.parameters(), dtype, keep))
        model, stored = quantize_model(model, stored, base["group_size"], base["bits"], quant_predicate=mixed(rules, base))
        folder = out / name
        folder.mkdir(exist_ok=True)
        save_model(folder, model)
        stored["dtype"] = {mx.bfloat16: "bfloat16", mx.float16: "float16"}[dtype]
        save_config(stored, folder / "config.json")
        (folder / "model.safetensors.index.json").unlink(missing_ok=True)
        write_logits(folder, 2100 + index, config["vocab_size"])


def cast(parameters, dtype, keep):
    from mlx.utils import tree_flatten, tree_unflatten

    return tree_unflatten([(path, v.astype(dtype) if keep(path) and mx.issubdtype(v.dtype, mx.floating) else v)
                           for path, v in tree_flatten(parameters)])


def write_logits(folder, seed, vocab):
    model, _ = load_model(folder)
    model.set_dtype(mx.float32)
    ids = np.random.default_rng(seed).integers(0, vocab, 120).tolist()
    logits = np.array(model(mx.array([ids]))[0].astype(mx.float32))
    np.save(folder / "logits.npy", logits)
    tokens, gaps = greedy(model, ids, 24)
    with open(folder / "golden.json", "w", encoding="utf-8") as f:
        json.dump({"ids": ids, "greedy": tokens, "greedy_gap": gaps, **versions()}, f)
        f.write("\n")
    print(folder.name, f"logits std {logits.std():.2f}, smallest gap {min(gaps):.4f}", flush=True)


def versions():
    import importlib.metadata as meta

    return {"mlx": meta.version("mlx"), "mlx_lm": meta.version("mlx-lm")}


def fixture_prompts(tokenizer):
    sys.path.insert(0, str(FIXTURE.parents[2] / "tools" / "fixture"))
    import random

    from corpus import chat, prose

    rng = random.Random(99)
    yield "prose", "Once upon a time", 64
    yield "code", "def ", 64
    yield "json", "{", 64
    yield "list", "How to ", 64
    tools = [chat.TOOLS["get_weather"], chat.TOOLS["calculate"]]
    yield "chat-think", chat.render([{"role": "user", "content": "Write a short story about a fox and a kite."}], None, "think"), 64
    yield "chat-plain", chat.render([{"role": "user", "content": "List 5 birds."}], None, "plain"), 64
    yield "chat-tool", chat.render([{"role": "user", "content": "What is the weather in Zürich for 3 days?"}], tools, "think"), 64
    yield "long", "<|endoftext|>".join(prose.story(rng) for _ in range(5)) + "<|endoftext|>Once", 32


def make_fixture(out):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(FIXTURE / "tokenizer.json"))
    model, _ = load_model(FIXTURE, strict=False)
    model.set_dtype(mx.float32)
    tensors, golden = {}, {"stop": [3577, 3575], "prompts": [], **versions()}
    for name, prompt, count in fixture_prompts(tokenizer):
        ids = tokenizer.encode(prompt).ids
        rows = sorted({*range(0, len(ids), max(1, len(ids) // 5)), len(ids) - 1})
        logits = np.array(model(mx.array([ids]))[0].astype(mx.float32))
        tensors[f"{name}.logits"] = mx.array(logits[rows])
        tokens, gaps = greedy(model, ids, count, stop=(3577, 3575))
        golden["prompts"].append({"name": name, "prompt": prompt, "ids": ids, "rows": rows, "greedy": tokens, "greedy_gap": gaps,
                                  "text": tokenizer.decode(tokens, skip_special_tokens=False)})
        print(name, len(ids), "ids, smallest gap", round(min(gaps), 4), repr(golden["prompts"][-1]["text"][:70]), flush=True)
    mx.save_safetensors(str(out / "logits.safetensors"), tensors)
    with open(out / "golden.json", "w", encoding="utf-8") as f:
        json.dump(golden, f, ensure_ascii=False, indent=1)
        f.write("\n")


def main():
    out, parts = Path(sys.argv[1]), sys.argv[2:] or ["pack", "models", "fixture"]
    for name, make, folder in (("pack", make_pack, out / "mlx"), ("models", make_models, out), ("fixture", make_fixture, out / "fixture")):
        if name in parts:
            folder.mkdir(parents=True, exist_ok=True)
            make(folder)


if __name__ == "__main__":
    main()
