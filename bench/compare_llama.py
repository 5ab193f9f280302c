#!/usr/bin/env python3
"""compare_llama.py MODEL.gguf [--json OUT]: Steadfast beside llama.cpp, same file, same threads, same run, by turns.

Measures tokens per second of a reply after a short prompt and of a prompt of 512 tokens. Each sample is a fresh process
that loads, warms up once and measures once; samples alternate between the programs; a figure is the median of --runs.
llama.cpp (llama-cpp-python built from source) runs with and without flash attention, and its better median counts. A
sample during which other processes took more than --noise of the cores is thrown away and taken again; --realtime (as
root) instead gives every sample of both programs the real-time class, so that others only run in the gaps.
Also measures how fast this machine's memory is read, and says how far decode is from it. Prints a Markdown table.
Needs tools/reference/requirements.txt for the Python that runs it.
"""
import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gguf

HERE = Path(__file__).resolve().parent
TASKS = {
    "decode": ["--prompt-tokens", "16", "--reply-tokens", "128"],
    "prompt": ["--prompt-tokens", "512", "--reply-tokens", "0"],
}


class Noise:
    """Share of the machine's cores that processes other than ours, or the host, took since the last call."""

    def __init__(self):
        self.previous = self._now()

    @staticmethod
    def _now():
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
        user, nice, system, idle, iowait, irq, softirq, steal = fields
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours = used.ru_utime + used.ru_stime
        busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        return busy, ours, time.monotonic()

    def share(self):
        (busy0, ours0, time0), (busy, ours, now) = self.previous, self._now()
        self.previous = (busy, ours, now)
        return max(0.0, (busy - busy0) - (ours - ours0)) / ((now - time0) * os.cpu_count())


def sample(command, limit):
    """(the command's JSON, its noise): tried again while other processes disturb it, at most 20 times."""
    for _ in range(20):
        noise = Noise()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        share = noise.share()
        if share <= limit:
            return json.loads(done.stdout), share
        print(f"  other processes took {share:.0%} of the cores; once more", file=sys.stderr)
        time.sleep(2)
    sys.exit("this machine is too busy to measure on; stop other work or raise --noise")


def commands(options, task):
    common = [*TASKS[task], "--threads", str(options.threads)]
    peer = [sys.executable, "-B", str(HERE / "peer_llama.py"), task, options.model, *common]
    ours = [options.program, "bench", task, options.model, *common, "--runs", "1", "--warmup", "1", "--json"]
    return {"steadfast": ours, "llama.cpp": peer, "llama.cpp, flash attention": [*peer, "--flash"]}


def compare(options, task):
    """name: the samples' tokens per second, in the order taken."""
    result = {name: [] for name in commands(options, task)}
    worst = 0.0
    for run in range(options.runs):
        for name, command in commands(options, task).items():
            answer, share = sample(command, options.noise)
            worst = max(worst, share)
            result[name].append(answer["tokens_per_second"])
        print(f"{task} {run + 1}/{options.runs}: " + ", ".join(f"{k} {v[-1]:.1f}" for k, v in result.items()),
              file=sys.stderr)
    return result, worst


def bandwidth(threads):
    """GB/s (1e9 bytes) that `threads` threads read from memory."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/bandwidth"
        source = str(HERE / "bandwidth.cc")
        subprocess.run(["g++", "-O3", "-march=native", "-std=c++20", "-pthread", source, "-o", program], check=True)
        return float(subprocess.run([program, str(threads)], check=True, capture_output=True, text=True).stdout)


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def report(options, data):
    """The Markdown text of docs/benchmarks.md."""
    quiet = ("every sample in the real-time class, since the machine was shared" if options.realtime else
             f"other processes took at most {data['noise']:.0%} of the cores in any sample")
    lines = [
        f"Commit {data['commit']}, {data['cpu']}, {options.threads} threads, {Path(options.model).name}; medians of "
        f"{options.runs}, {quiet}.", "",
        "| tokens per second | Steadfast | llama.cpp | ratio |", "|---|---|---|---|"]
    for task, name in (("decode", "reply of 128 after 16"), ("prompt", "prompt of 512")):
        row = data[task]
        lines.append(f"| {name} | {row['steadfast']:.1f} | {row['llama.cpp']:.1f} | {row['ratio']:.2f} |")
    lines += ["", f"A reply's token reads {data['weight_bytes'] / 1e6:.1f} MB of weights; memory is read at "
              f"{data['bandwidth']:.1f} GB/s ({options.threads} threads, bench/bandwidth.cc), which allows {data['floor']:.0f} tokens per "
              f"second at most: decode runs at {data['decode']['steadfast'] / data['floor']:.0%} of that."]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--program", default=str(HERE.parent / "build/release/steadfast"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--noise", type=float, default=0.05)
    parser.add_argument("--realtime", action="store_true", help="for a machine that is shared; needs root")
    parser.add_argument("--json", help="also writes every sample there")
    options = parser.parse_args()
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        options.noise = 1.0
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    data = {"commit": subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip(), "cpu": cpu_name(),
            "threads": options.threads, "bandwidth": bandwidth(options.threads), "noise": 0.0}
    data["weight_bytes"] = sum(int(tensor.n_bytes) for tensor in gguf.GGUFReader(options.model).tensors)
    data["floor"] = data["bandwidth"] * 1e9 / data["weight_bytes"]
    for task in TASKS:
        samples, noise = compare(options, task)
        medians = {name: statistics.median(values) for name, values in samples.items()}
        best = max(value for name, value in medians.items() if name != "steadfast")
        data[task] = {"samples": samples, "medians": medians, "steadfast": medians["steadfast"], "llama.cpp": best,
                      "ratio": medians["steadfast"] / best}
        data["noise"] = max(data["noise"], noise)
    print(report(options, data))
    if options.json:
        Path(options.json).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
