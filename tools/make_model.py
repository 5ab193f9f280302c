#!/usr/bin/env python3
"""make_model.py OUT [--preset NAME] [options]: a random model of any size, as a folder in MLX-affine form.

The weights are made packed, with no full-width copy: random codes, and a scale and a bias for each group such that an
expanded matrix of `in` columns has mean 0 and standard deviation about 1/sqrt(in). So activations and logits keep an
ordinary scale and speed and memory are those of a trained model of the shape; what it writes means nothing. Families:
qwen3_5 (Gated DeltaNet layers, gated attention every fourth) and llama. Each tensor's values depend on --seed and its
name alone. Written tensor by tensor in files of at most 4 GB. No tokenizer files. Needs numpy only.
"""
import argparse
import json
import math
import shutil
import sys
import zlib
from pathlib import Path

import numpy as np

SHARD_BYTES = 4_000_000_000
CHUNK_BYTES = 1 << 26
SIZES = {"U32": 4, "F32": 4, "BF16": 2}
KEYS = ("family", "layers", "hidden", "intermediate", "heads", "kv_heads", "head_dim", "linear_key_heads",
        "linear_value_heads", "linear_key_dim", "linear_value_dim", "vocab", "tied", "positions")
PRESETS = {
    "tiny": ("qwen3_5", 4, 128, 256, 4, 2, 32, 2, 4, 32, 32, 512, True, 4096),
    "qwen3.5-0.8b": ("qwen3_5", 24, 1024, 3584, 8, 2, 256, 16, 16, 128, 128, 248320, True, 262144),
    "qwen3.5-9b": ("qwen3_5", 32, 4096, 12288, 16, 4, 256, 16, 32, 128, 128, 248320, False, 262144),
    "qwen3.5-27b": ("qwen3_5", 64, 5120, 17408, 24, 4, 256, 16, 48, 128, 128, 248320, False, 262144),
}
NORM_NOISE = 0.05
SLOWEST, FASTEST = -math.log(0.9999), -math.log(0.5)  # a step's decay is exp(-rate)


class Source:
    """Uniform numbers of one tensor, from the bit generator's raw words, whose stream numpy promises to keep."""

    def __init__(self, seed, name):
        self.bits = np.random.SFC64(np.random.SeedSequence([seed, zlib.crc32(name.encode())]))

    def words(self, count):
        return self.bits.random_raw((count + 1) // 2).view(np.uint32)[:count]

    def uniform(self, count, low=0.0, high=1.0):
        return low + (high - low) * (self.words(count).astype(np.float64) + 0.5) / 2.0**32

    def spread(self, count, deviation):
        """Uniform about 0 with this standard deviation."""
        return self.uniform(count, -math.sqrt(3) * deviation, math.sqrt(3) * deviation)


def bf16(values):
    """The nearest BF16 of each (ties to even), as bytes."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def f32(values):
    return np.asarray(values, "<f4").tobytes()


class Tensor:
    """A name, a type, a shape and a function from a Source to chunks of bytes."""

    def __init__(self, name, dtype, shape, chunks):
        self.name, self.dtype, self.shape, self.chunks = name, dtype, shape, chunks
        self.bytes = math.prod(shape) * SIZES[dtype]


def affine(model, name, rows, columns, gain=1.0):
    """The three tensors of a quantised matrix [rows, columns] of standard deviation gain/sqrt(columns)."""
    if columns % model.group != 0:
        sys.exit(f"make_model: {name} has {columns} columns, which groups of {model.group} do not divide; give sizes "
                 f"that are multiples of --group")
    words, groups, top = columns * model.bits // 32, columns // model.group, 2**model.bits - 1
    # Codes uniform over 0..top have the variance (4^bits - 1) / 12.
    scale = gain * math.sqrt(12 / (4.0**model.bits - 1) / columns)

    def codes(source):
        left = rows * words
        while left > 0:
            take = min(left, CHUNK_BYTES // 4)
            yield source.words(take).astype("<u4", copy=False).tobytes()
            left -= take

    def group_scales():
        return scale * Source(model.seed, name + ".scales").uniform(rows * groups, 0.8, 1.2)

    def biases(source):
        yield bf16(group_scales() * (source.uniform(rows * groups, -0.5, 0.5) - top / 2))

    return [Tensor(name + ".weight", "U32", [rows, words], codes),
            Tensor(name + ".scales", "BF16", [rows, groups], lambda source: iter([bf16(group_scales())])),
            Tensor(name + ".biases", "BF16", [rows, groups], biases)]


def vector(name, size, make, dtype="BF16"):
    write = bf16 if dtype == "BF16" else f32
    return Tensor(name, dtype, [size], lambda source: iter([write(make(source))]))


def norm(name, size):
    return vector(name + ".weight", size, lambda source: 1 + source.spread(size, NORM_NOISE))


def attention(model, name):
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    hybrid = model.family == "qwen3_5"
    tensors = affine(model, name + ".q_proj", queries * (2 if hybrid else 1), model.hidden)  # a hybrid's with the gate
    tensors += affine(model, name + ".k_proj", keys, model.hidden) + affine(model, name + ".v_proj", keys, model.hidden)
    tensors += affine(model, name + ".o_proj", model.hidden, queries)
    if hybrid:
        tensors += [norm(name + ".q_norm", model.head_dim), norm(name + ".k_norm", model.head_dim)]
    return tensors


def delta(model, name):
    """A Gated DeltaNet: a step's decay is exp(-exp(A_log) * softplus(a + dt_bias)), and the rates exp(A_log) *
    softplus(dt_bias) are spread evenly in their logarithm."""
    heads = model.linear_value_heads
    values = heads * model.linear_value_dim
    channels = 2 * model.linear_key_heads * model.linear_key_dim + values

    def speeds():
        return Source(model.seed, name + ".A_log").uniform(heads, 1, 16)

    def bias(source):
        rates = np.exp(source.uniform(heads, math.log(SLOWEST), math.log(FASTEST)))
        return np.log(np.expm1(rates / speeds()))

    tensors = affine(model, name + ".in_proj_qkv", channels, model.hidden)
    tensors += affine(model, name + ".in_proj_z", values, model.hidden)
    tensors += affine(model, name + ".in_proj_b", heads, model.hidden)
    tensors += affine(model, name + ".in_proj_a", heads, model.hidden, gain=0.25)  # keeps the decays near their bias
    tensors += affine(model, name + ".out_proj", model.hidden, values)
    taps = Tensor(name + ".conv1d.weight", "BF16", [channels, 4, 1],
                  lambda source: iter([bf16(source.spread(channels * 4, 0.5))]))
    return tensors + [taps, vector(name + ".A_log", heads, lambda source: np.log(speeds()), "F32"),
                      vector(name + ".dt_bias", heads, bias), norm(name + ".norm", model.linear_value_dim)]


def is_recurrent(model, layer):
    return model.family == "qwen3_5" and (layer + 1) % 4 != 0


def tensors_of(model):
    outer = "language_model." if model.family == "qwen3_5" else ""
    tensors = affine(model, outer + "model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        name = f"{outer}model.layers.{layer}"
        tensors.append(norm(name + ".input_layernorm", model.hidden))
        recurrent = is_recurrent(model, layer)
        tensors += delta(model, name + ".linear_attn") if recurrent else attention(model, name + ".self_attn")
        tensors.append(norm(name + ".post_attention_layernorm", model.hidden))
        tensors += affine(model, name + ".mlp.gate_proj", model.intermediate, model.hidden)
        tensors += affine(model, name + ".mlp.up_proj", model.intermediate, model.hidden)
        tensors += affine(model, name + ".mlp.down_proj", model.hidden, model.intermediate)
    tensors.append(norm(outer + "model.norm", model.hidden))
    if not model.tied:
        tensors += affine(model, outer + "lm_head", model.vocab, model.hidden)
    return tensors


def common_config(model):
    return {"vocab_size": model.vocab, "hidden_size": model.hidden, "intermediate_size": model.intermediate,
            "num_hidden_layers": model.layers, "num_attention_heads": model.heads,
            "num_key_value_heads": model.kv_heads, "head_dim": model.head_dim, "hidden_act": "silu",
            "max_position_embeddings": model.positions, "rms_norm_eps": 1e-6, "attention_bias": False,
            "tie_word_embeddings": model.tied, "dtype": "bfloat16"}


def config_of(model):
    quantization = {"group_size": model.group, "bits": model.bits, "mode": "affine"}
    packed = {"quantization": quantization, "quantization_config": quantization}
    if model.family == "llama":
        return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", **common_config(model),
                "rope_theta": 500000.0, "mlp_bias": False, **packed}
    pairs = int(model.head_dim * 0.25) // 2
    rope = {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25,
            "mrope_section": [(pairs + 2) // 3, (pairs + 1) // 3, pairs // 3], "mrope_interleaved": True}
    types = ["linear_attention" if is_recurrent(model, layer) else "full_attention" for layer in range(model.layers)]
    text = {"model_type": "qwen3_5_text", **common_config(model), "rope_parameters": rope, "attn_output_gate": True,
            "linear_conv_kernel_dim": 4, "linear_num_key_heads": model.linear_key_heads,
            "linear_num_value_heads": model.linear_value_heads, "linear_key_head_dim": model.linear_key_dim,
            "linear_value_head_dim": model.linear_value_dim, "full_attention_interval": 4, "layer_types": types,
            "mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 0}
    return {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", **packed,
            "text_config": text, "tie_word_embeddings": model.tied}


def split(tensors):
    """Lists of tensors of at most SHARD_BYTES each (a larger tensor has a file of its own), wider types first, so that
    every tensor is aligned to its type."""
    shards, size = [[]], 0
    for tensor in tensors:
        if shards[-1] and size + tensor.bytes > SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append(tensor)
        size += tensor.bytes
    return [sorted(shard, key=lambda tensor: -SIZES[tensor.dtype]) for shard in shards]


class Progress:
    """Gigabytes written, on a terminal only."""

    def __init__(self, total):
        self.total, self.done, self.shown = total, 0, sys.stderr.isatty()

    def add(self, count):
        self.done += count
        if self.shown:
            print(f"\r{self.done / 1e9:.2f} of {self.total / 1e9:.2f} GB", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.shown:
            print(file=sys.stderr)


def write_shard(path, shard, seed, progress):
    header, offset = {"__metadata__": {"format": "mlx"}}, 0
    for tensor in shard:
        header[tensor.name] = {"dtype": tensor.dtype, "shape": tensor.shape,
                               "data_offsets": [offset, offset + tensor.bytes]}
        offset += tensor.bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in shard:
            written = 0
            for chunk in tensor.chunks(Source(seed, tensor.name)):
                file.write(chunk)
                written += len(chunk)
                progress.add(len(chunk))
            assert written == tensor.bytes, tensor.name


def write_model(model, out):
    tensors = tensors_of(model)
    total = sum(tensor.bytes for tensor in tensors)
    free = shutil.disk_usage(out).free
    if total > free:
        sys.exit(f"make_model: the model takes {total / 1e9:.1f} GB and {out} has {free / 1e9:.1f} GB free; free some "
                 f"or name another folder")
    shards, progress, where = split(tensors), Progress(total), {}
    for number, shard in enumerate(shards, 1):
        name = "model.safetensors" if len(shards) == 1 else f"model-{number:05}-of-{len(shards):05}.safetensors"
        where.update({tensor.name: name for tensor in shard})
        write_shard(out / name, shard, model.seed, progress)
    progress.end()
    if len(shards) > 1:
        index = {"metadata": {"total_size": total}, "weight_map": where}
        (out / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    (out / "config.json").write_text(json.dumps(config_of(model), indent=2) + "\n", encoding="utf-8")
    print(f"{out}: {model.family}, {len(tensors)} tensors, {total} bytes in {len(shards)} files")


def check(model, parser):
    for key in KEYS:
        if key not in ("family", "tied") and getattr(model, key) < 1:
            parser.error(f"--{key.replace('_', '-')} must be at least 1")
    if model.seed < 0:
        parser.error("--seed must not be negative")
    if model.heads % model.kv_heads != 0 or model.linear_value_heads % model.linear_key_heads != 0:
        parser.error("key heads must divide the heads that share them")
    if model.head_dim % 16 != 0 or model.linear_key_dim % 16 != 0:
        parser.error("--head-dim and --linear-key-dim must be multiples of 16")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a folder that is new or empty")
    parser.add_argument("--preset", choices=PRESETS, default="tiny", help="sizes that the options below change")
    parser.add_argument("--family", choices=("qwen3_5", "llama"))
    for key in KEYS:
        if key not in ("family", "tied"):
            parser.add_argument("--" + key.replace("_", "-"), type=int)
    parser.add_argument("--tied", action=argparse.BooleanOptionalAction, help="the head is the embedding")
    parser.add_argument("--bits", type=int, choices=(2, 3, 4, 5, 6, 8), default=4)
    parser.add_argument("--group", type=int, choices=(32, 64, 128), default=64)
    parser.add_argument("--seed", type=int, default=0)
    model = parser.parse_args()
    for key, value in zip(KEYS, PRESETS[model.preset]):
        if getattr(model, key) is None:
            setattr(model, key, value)
    check(model, parser)
    try:
        model.out.mkdir(parents=True, exist_ok=True)
        if any(model.out.iterdir()):
            sys.exit(f"make_model: {model.out} is not empty; name a new folder")
        write_model(model, model.out)
    except OSError as error:
        sys.exit(f"make_model: {error}")


if __name__ == "__main__":
    main()
