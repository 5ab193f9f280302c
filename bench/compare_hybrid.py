#!/usr/bin/env python3
"""compare_hybrid.py MODEL... [--json OUT]: Steadfast beside mlx-lm on the CPU, same folders, same run, by turns.

Measures tokens per second of a reply of 64 after 16 tokens and of a prompt of 512, each sample a fresh process; a figure
is the median of --runs. mlx-lm's prompts may be cut (--peer-prompt); after a sample of it
that takes over --slow seconds no more are taken, and past --limit it is stopped: the table says so. Also measures how fast memory is read, and how far a reply
is from it. Prints a Markdown table. Run it with a Python that has mlx-lm.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def call(command, limit=None):
    """The command's JSON and seconds; None for the JSON past the limit."""
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, limit
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout), time.monotonic() - start


def compare(options, model, task):
    """(our samples, the peer's samples), taken by turns."""
    ours, peer, asked = [], [], True
    sizes = ["--prompt-tokens", "16", "--reply-tokens", "64"] if task == "decode" else ["--prompt-tokens", "512"]
    cut = sizes if task == "decode" else ["--prompt-tokens", str(options.peer_prompt)]
    for _ in range(options.runs):
        answer, _ = call([options.program, "bench", task, model, *sizes, "--threads", str(options.threads), "--runs",
                          "1", "--warmup", "1", "--json"])
        ours.append(answer["tokens_per_second"])
        if not asked:
            continue
        answer, seconds = call([sys.executable, "-B", str(HERE / "peer_mlx.py"), task, model, *cut], options.limit)
        if answer:
            peer.append(answer["tokens_per_second"])
        asked = answer is not None and seconds <= options.slow
    print(task, model, ours, peer, file=sys.stderr, flush=True)
    return ours, peer


def cell(samples, options):
    if not samples:
        return f"stopped after {options.limit} s"
    return f"{statistics.median(samples):.1f}" + (f" (runs: {len(samples)})" if len(samples) < options.runs else "")


def bandwidth(threads):
    """GB/s (1e9 bytes) that `threads` threads read from memory."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/bandwidth"
        subprocess.run(["g++", "-O3", "-march=native", "-std=c++20", "-pthread", str(HERE / "bandwidth.cc"), "-o",
                        program], check=True)
        return float(subprocess.run([program, str(threads)], check=True, capture_output=True, text=True).stdout)


def bytes_per_token(options, model):
    """Weights that a token of a reply reads: all, less an embedding that is not the head too."""
    info, _ = call([options.program, "info", model, "--json"])
    if info["tied_head"]:
        return info["weights_bytes"]
    config = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
    quantization = config["quantization"]
    row = info["hidden"] * quantization["bits"] / 8 + info["hidden"] / quantization["group_size"] * 4
    return info["weights_bytes"] - int(info["vocab"] * row)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--program", default=str(HERE.parent / "build/release/steadfast"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer-prompt", type=int, default=512)
    parser.add_argument("--slow", type=float, default=60)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--json", help="also writes every sample there")
    options = parser.parse_args()
    rate, data = bandwidth(options.threads), {}
    print(f"Memory is read at {rate:.1f} GB/s ({options.threads} threads); mlx-lm's prompts: {options.peer_prompt} tokens.\n\n"
          "| model | MB a token | floor | reply of 64 | of the floor | mlx-lm | prompt of 512 | mlx-lm |\n"
          "|---|---|---|---|---|---|---|---|", flush=True)
    for model in options.models:
        size = bytes_per_token(options, model)
        floor = rate * 1e9 / size
        decode, prompt = (compare(options, model, task) for task in ("decode", "prompt"))
        data[model] = {"bandwidth": rate, "bytes": size, "decode": decode, "prompt": prompt}
        print(f"| {Path(model).name} | {size / 1e6:.1f} | {floor:.0f} | {cell(decode[0], options)} | "
              f"{statistics.median(decode[0]) / floor:.0%} | {cell(decode[1], options)} | {cell(prompt[0], options)} | "
              f"{cell(prompt[1], options)} |", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
