#!/usr/bin/env python3
"""compare_logits.py PROGRAM MODEL...: logits of a card beside those of the CPU in float32, same program, same ids.

MODEL: a folder or .gguf file. Ids come from the folder's golden.json where there is one, else they are arbitrary. Prints a
line a model: mean and largest KL divergence of the card's distribution from float32's, the largest difference in
standard deviations of the logits, and the share of positions whose first choice is the same. --limit KL: exit 1 if a
mean is larger. Needs numpy.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def logits(program, model, ids, folder, *options):
    out = Path(folder) / "logits.npy"
    subprocess.run([program, "score", model, "--ids", ids, "--out", out, *options], check=True, stdout=subprocess.DEVNULL)
    return np.load(out).astype(np.float64)


def log_softmax(x):
    x = x - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kv-dtype", default="bf16")
    parser.add_argument("--act", default="bf16")
    parser.add_argument("--prompt-act", default="bf16")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--vocab", type=int, default=500)
    parser.add_argument("--limit", type=float)
    args = parser.parse_args()
    worst = 0.0
    print(f"{'model':<34} {'tokens':>6} {'mean KL':>10} {'largest':>10} {'std devs':>9} {'first':>6}")
    for model in args.models:
        with tempfile.TemporaryDirectory() as folder:
            golden = Path(model) / "golden.json"
            ids = json.loads(golden.read_text())["ids"] if golden.is_file() else [
                (i * 7919 + 13) % args.vocab for i in range(args.tokens)]
            path = Path(folder) / "ids.json"
            path.write_text(json.dumps(ids))
            exact = logits(args.program, model, path, folder, "--device", "cpu", "--act", "f32")
            card = logits(args.program, model, path, folder, "--device", args.device, "--kv-dtype", args.kv_dtype,
                          "--act", args.act, "--prompt-act", args.prompt_act)
        p, q = log_softmax(exact), log_softmax(card)
        kl = (np.exp(p) * (p - q)).sum(axis=1)
        distance = np.abs(card - exact).max() / exact.std()
        same = (exact.argmax(axis=1) == card.argmax(axis=1)).mean()
        print(f"{Path(model).name:<34} {len(ids):>6} {kl.mean():>10.3g} {kl.max():>10.3g} {distance:>9.4f} {same:>6.1%}")
        worst = max(worst, kl.mean()) if np.isfinite(kl.mean()) else np.inf
    return 1 if args.limit is not None and not worst <= args.limit else 0


sys.exit(main())
