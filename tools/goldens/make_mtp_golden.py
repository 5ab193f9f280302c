#!/usr/bin/env python3
"""The MTP head's golden, from the fixture's stored weights, by tools/fixture/hybrid.py in float32:
OUT/golden.safetensors with ids [T], logits [T, V] of the model, and draft_logits [T - 1, V]: row t is the head's
prediction of token t + 2, from the model's normed hidden state at t and the embedding of token t + 1 (model-spec 1.8).
Usage: make_mtp_golden.py OUT"""

import json
import os
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "fixture"))
import affine  # noqa: E402
import hybrid  # noqa: E402
from quantise import CENTRED  # noqa: E402

PROMPT = "Once upon a time there was a brave fox named Mia who lived near the mill. She liked honey more than anything else."


def unpack(words, bits):
    """uint32 words [out, n] to codes [out, n * 32 / bits]."""
    stream = ((words.long().unsqueeze(-1) >> torch.arange(32)) & 1).reshape(words.shape[0], -1, bits)
    return (stream << torch.arange(bits)).sum(-1)


def weights(folder):
    """The stored tensors as hybrid.py names them, float32."""
    stored, out = load_file(folder / "model.safetensors"), {}
    for name, value in stored.items():
        short = name.removeprefix("language_model.")
        if name.endswith((".scales", ".biases")):
            continue
        module = name.removesuffix(".weight")
        if module + ".scales" in stored:
            codes = unpack(value, affine.bits_of(module))
            out[short] = affine.dequantise(codes, stored[module + ".scales"], stored[module + ".biases"])
        elif name.endswith("conv1d.weight"):
            out[short] = value.float().movedim(1, 2)
        else:
            out[short] = value.float() - (1.0 if name.endswith(CENTRED) else 0.0)
    return out


@torch.no_grad()
def main():
    from tokenizers import Tokenizer

    folder, out = ROOT / "tests" / "fixture" / "model", Path(sys.argv[1])
    with open(folder / "config.json", encoding="utf-8") as f:
        model = hybrid.Hybrid(json.load(f)["text_config"])
    model.load_state_dict(weights(folder))
    model.set_quantised(False, "cpu")  # the weights are the stored ones already
    ids = torch.tensor(Tokenizer.from_file(str(folder / "tokenizer.json")).encode(PROMPT).ids)
    rows = len(ids)
    padded = torch.nn.functional.pad(ids, (0, -rows % hybrid.CHUNK))[None]
    hidden, table = model(padded)
    drafted = model.draft_hidden(hidden[:, :rows - 1], ids[None, 1:], table)
    logits, drafts = hidden[0, :rows] @ table.T, drafted[0] @ table.T
    agree = (drafts[:-1].argmax(-1) == logits[1:-1].argmax(-1)).float().mean()
    print(f"{rows} rows; drafts equal the model's next choice in {agree:.2f} of them")
    os.makedirs(out, exist_ok=True)
    save_file({"ids": ids.int(), "logits": logits.contiguous(), "draft_logits": drafts.contiguous()}, out / "golden.safetensors")


if __name__ == "__main__":
    main()
