#!/usr/bin/env python3
"""kl.py REFERENCE.npy OTHER.npy...: how far other logits [tokens, vocabulary] are from a reference's.

A line each: mean and largest KL(reference || other) over the positions, in nats (softmax in float64), the largest
difference of two logits, and the share of positions whose highest logit is the same token. --ids FILE.json adds the
mean negative log-likelihood of the next token (the reference's own first). --limit X: exit status 1 if a mean is above.
"""
import argparse
import json
import sys

import numpy as np


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def compare(reference, other, step=64):
    """(KL of each position, largest |difference|, share of equal first choices); in steps, to bound the memory."""
    divergence, largest, agree = [], 0.0, 0
    for start in range(0, len(reference), step):
        a, b = reference[start : start + step], other[start : start + step]
        p, q = log_softmax(a), log_softmax(b)
        divergence.append((np.exp(p) * (p - q)).sum(axis=-1))
        largest = max(largest, float(np.abs(a.astype(np.float64) - b).max()))
        agree += int((a.argmax(axis=-1) == b.argmax(axis=-1)).sum())
    return np.concatenate(divergence), largest, agree / len(reference)


def next_token_loss(logits, ids, step=64):
    losses = []
    for start in range(0, len(ids) - 1, step):
        rows = log_softmax(logits[start : min(start + step, len(ids) - 1)])
        losses.append(-rows[np.arange(len(rows)), ids[start + 1 : start + 1 + len(rows)]])
    return float(np.concatenate(losses).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference")
    parser.add_argument("others", nargs="+")
    parser.add_argument("--ids", help="JSON array of the token ids")
    parser.add_argument("--limit", type=float, help="the largest mean KL that is good")
    options = parser.parse_args()
    ids = np.array(json.load(open(options.ids, encoding="utf-8"))) if options.ids else None
    reference = np.load(options.reference, mmap_mode="r")
    print(f"{options.reference}: {reference.shape[0]} positions" +
          (f", loss {next_token_loss(reference, ids):.6f}" if ids is not None else ""))
    worst = 0.0
    for path in options.others:
        other = np.load(path, mmap_mode="r")
        if other.shape != reference.shape or other.dtype != np.float32:
            sys.exit(f"{path} holds {other.dtype} {other.shape}; the reference {reference.dtype} {reference.shape}")
        divergence, largest, agree = compare(reference, other)
        worst = max(worst, float(divergence.mean()))
        loss = f", loss {next_token_loss(other, ids):.6f}" if ids is not None else ""
        print(f"{path}: mean KL {divergence.mean():.3e}, largest KL {divergence.max():.3e}, largest difference "
              f"{largest:.3e}, same first choice {agree:.2%}{loss}")
    return int(options.limit is not None and not worst <= options.limit)


if __name__ == "__main__":
    sys.exit(main())
