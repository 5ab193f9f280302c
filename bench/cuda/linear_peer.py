"""linear_peer.py TIMES: PyTorch's bf16 GEMM on the shapes of linear_speed's "time" lines, and the ratio to them.

Above 1: linears of this project are faster. PyTorch reads expanded bf16 weights and writes bf16; several copies of the
weights are used in turn, as linear_speed does, and a graph of calls is replayed.
"""
import statistics
import sys

import torch


def microseconds(rows, out, inputs):
    copies = max(2, int(150e6 / (2 * out * inputs)) + 1)
    weights = [torch.randn(out, inputs, device="cuda", dtype=torch.bfloat16) * 0.02 for _ in range(copies)]
    x = torch.randn(rows, inputs, device="cuda", dtype=torch.bfloat16)
    y = torch.empty(rows, out, device="cuda", dtype=torch.bfloat16)
    calls = max(1, min(40, int(6e-3 * 600e12 / (2.0 * rows * out * inputs))))

    def run():
        for i in range(calls):
            torch.mm(x, weights[i % copies].t(), out=y)

    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    times = []
    for i in range(8):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end) * 1e3 / calls)
    return statistics.median(times)


def main(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if len(words) < 6 or words[0] != "time":
                continue
            name, out, inputs, rows, ours = words[1], int(words[2]), int(words[3]), int(words[4]), float(words[5])
            peer = microseconds(rows, out, inputs)
            rate = 2.0 * rows * out * inputs / peer * 1e-6
            print(f"{name:10s} {rows:5d} rows: torch {peer:9.2f} us ({rate:5.0f} TFLOP/s), ours {ours:9.2f} us, "
                  f"ratio {peer / ours:.3f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
