#!/usr/bin/env python3
"""make_reference_logits.py MODEL.gguf TEXT OUT: logits of two other programs for every position of a text, one window.

OUT/ids.json: the text's token ids (no begin-of-text token). OUT/f32.npy: float32 logits [tokens, vocabulary] by Hugging
Face transformers, weights expanded to float32, float32 arithmetic. OUT/llama.npy: the same ids by llama.cpp as it runs
by default (int8 activations). Before that it checks that transformers' expanded weights equal our own to the bit.
Needs tools/reference/requirements.txt.
"""
import argparse
import json
from pathlib import Path

import gguf
import numpy as np

from gguf_blocks import expand

HUGGING_FACE_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "attn_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}


def hugging_face_name(name):
    if not name.startswith("blk."):
        return HUGGING_FACE_NAMES[name]
    _, layer, rest = name.split(".", 2)
    return f"model.layers.{layer}.{HUGGING_FACE_NAMES[rest]}"


def unpermuted(weight, heads):
    """GGUF `llama` files pair rotary rows (2i, 2i + 1); Hugging Face pairs (i, i + d/2). Rows of each head reordered."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def check_weights(path, model):
    """Every tensor of the file, expanded by our own code, against the loaded model's: equal to the bit or an error."""
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    heads = {"attn_q": model.config.num_attention_heads, "attn_k": model.config.num_key_value_heads}
    tensors = gguf.GGUFReader(path).tensors
    for tensor in tensors:
        weight = expand(tensor.tensor_type.name, tensor.data, [int(n) for n in reversed(tensor.shape)])
        for part, count in heads.items():
            if part in tensor.name:
                weight = unpermuted(weight, count)
        if not np.array_equal(weight.view(np.uint32), state[hugging_face_name(tensor.name)].view(np.uint32)):
            raise SystemExit(f"{tensor.name}: transformers expands it otherwise than model-spec 4.2 says")
    print(f"weights: {len(tensors)} tensors equal to our own expansion, to the bit")


def transformers_logits(path, ids, dtype):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    model.eval()
    check_weights(path, model)
    with torch.no_grad():
        return model.to(dtype)(torch.tensor([ids])).logits[0].to(torch.float64).numpy()


def llama_logits(path, ids, threads):
    import llama_cpp

    model = llama_cpp.Llama(str(path), n_ctx=len(ids), n_batch=512, n_ubatch=512, n_threads=threads,
                            n_threads_batch=threads, logits_all=True, verbose=False)
    model.eval(ids)
    return np.array(model.scores[: len(ids)], dtype=np.float32)


def tokens_of(path, text):
    import llama_cpp

    vocabulary = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    return vocabulary.tokenize(text.encode(), add_bos=False, special=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--double", action="store_true", help="also OUT/f64.npy: the forward in float64, rounded at the end")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    ids = tokens_of(options.model, options.text.read_text())
    (options.out / "ids.json").write_text(json.dumps(ids) + "\n")
    print(f"tokens: {len(ids)}, one window")
    np.save(options.out / "llama.npy", llama_logits(options.model, ids, options.threads))
    np.save(options.out / "f32.npy", transformers_logits(options.model, ids, torch.float32).astype(np.float32))
    if options.double:
        np.save(options.out / "f64.npy", transformers_logits(options.model, ids, torch.float64).astype(np.float32))


if __name__ == "__main__":
    main()
