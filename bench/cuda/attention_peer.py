"""attention_peer.py: PyTorch's scaled_dot_product_attention on the shapes of attention_speed, its best backend each.

24 heads over 4 of 256 dims, bf16. Reply rows rotate over 400 MB of caches and replay from a CUDA graph; prompts are causal
with the new rows at the end. Medians of several runs.
"""

import statistics
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

warnings.filterwarnings("ignore")
HEADS, KV_HEADS, DIM = 24, 4, 256
BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]


def random(*shape):
    return (torch.rand(*shape, device="cuda") * 3 - 1.5).to(torch.bfloat16)


def measure(run, calls, rounds=7):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    times = []
    for _ in range(rounds + 2):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) * 1e3 / calls)
    return statistics.median(times[2:])


def best(variants, calls):
    found = (float("inf"), "none")
    for name, run in variants:
        try:
            found = min(found, (measure(run, calls), name))
        except RuntimeError:
            torch.cuda.synchronize()
    return found


def replies(streams, context):
    size = 2 * streams * KV_HEADS * context * DIM * 2
    caches = max(1, 400 * 2**20 // size + 1)
    calls = max(caches, 8)
    query = random(streams, HEADS, 1, DIM)
    kv = [(random(streams, KV_HEADS, context, DIM), random(streams, KV_HEADS, context, DIM)) for _ in range(caches)]

    def variant(backend, packed):
        def run():
            with sdpa_kernel(backend):
                for call in range(calls):
                    key, value = kv[call % caches]
                    if packed:  # the six heads of a group as six rows: no mask is needed for one position
                        F.scaled_dot_product_attention(query.view(streams, KV_HEADS, HEADS // KV_HEADS, DIM), key, value)
                    else:
                        F.scaled_dot_product_attention(query, key, value, enable_gqa=True)

        return run

    variants = [(f"{b.name} {'rows' if p else 'gqa'}", variant(b, p)) for b in BACKENDS for p in (False, True)]
    gqa = best([v for v in variants if v[0].endswith("gqa")], calls)
    packed = best([v for v in variants if v[0].endswith("rows")], calls)
    print(f"torch reply rows, {streams} streams, {context:6d} keys: enable_gqa {gqa[0]:8.1f} us {size / gqa[0] * 1e-3:6.0f} GB/s "
          f"({gqa[1]}); heads as rows {packed[0]:8.1f} us {size / packed[0] * 1e-3:6.0f} GB/s ({packed[1]})", flush=True)


def prompt(rows, context):
    query, key, value = random(1, HEADS, rows, DIM), random(1, KV_HEADS, context, DIM), random(1, KV_HEADS, context, DIM)
    wide = [x.repeat_interleave(HEADS // KV_HEADS, 1) for x in (key, value)]

    def variant(backend, expanded):
        def run():
            k, v = wide if expanded else (key, value)
            with sdpa_kernel(backend):
                if rows == context:
                    F.scaled_dot_product_attention(query, k, v, is_causal=True, enable_gqa=not expanded)
                else:
                    F.scaled_dot_product_attention(
                        query, k, v, attn_mask=causal_lower_right(rows, context), enable_gqa=not expanded)

        return run

    variants = [(f"{b.name} {'expanded' if e else 'gqa'}", variant(b, e)) for b in BACKENDS for e in (False, True)]
    time, name = best(variants, 1)
    operations = 4 * HEADS * DIM * sum(context - rows + r + 1 for r in range(rows))
    print(f"torch prompt, {rows:5d} rows at {context:6d}: {time:8.1f} us {operations / time * 1e-6:6.1f} TFLOP/s ({name})", flush=True)


for keys in (1024, 4096, 32768, 131072):
    for count in (1, 8):
        replies(count, keys)
prompt(8192, 8192)
for new in (2048, 1024, 256):
    prompt(new, 32768)
for new in (16, 64):
    prompt(new, 8192)
