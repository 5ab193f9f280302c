#!/usr/bin/env python3
"""peer_mlx.py decode|prompt MODEL: one measurement of mlx-lm on the CPU in this process, as JSON on standard output.

mlx_lm's own generate_step, greedy, on fixed ids. prompt: the time to the first token. decode: from the first token of a
reply to its last. Loading is not timed; a short warm-up comes first.
"""
import argparse
import json
import time
from pathlib import Path

import mlx.core as mx
from mlx_lm.generate import generate_step
from mlx_lm.utils import load_model


def measure(model, vocabulary, what, prompt_tokens, reply_tokens):
    """Tokens per second."""
    prompt = mx.array([(i + 1) * 104729 % vocabulary for i in range(prompt_tokens)])
    count = reply_tokens + 1 if what == "decode" else 1
    times = [time.perf_counter()]
    for _ in generate_step(prompt, model, max_tokens=count):
        times.append(time.perf_counter())
    if what == "decode":
        return reply_tokens / (times[-1] - times[1])
    return prompt_tokens / (times[1] - times[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["decode", "prompt"])
    parser.add_argument("model", type=Path)
    parser.add_argument("--prompt-tokens", type=int, default=16)
    parser.add_argument("--reply-tokens", type=int, default=64)
    options = parser.parse_args()
    mx.set_default_device(mx.cpu)
    model, config = load_model(options.model)
    vocabulary = config.get("text_config", config)["vocab_size"]
    measure(model, vocabulary, "decode", 8, 2)
    rate = measure(model, vocabulary, options.what, options.prompt_tokens, options.reply_tokens)
    print(json.dumps({"tokens_per_second": rate, "mlx": mx.__version__}))


if __name__ == "__main__":
    main()
