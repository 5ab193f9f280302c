"""Our own expansion of GGUF blocks to float32 (model-spec 4.2), used to check other programs' expansion, not for speed.

A block holds 32 elements of a row. Q4_1: f16 scale d, f16 minimum m, 16 bytes; byte i holds element i in its low and
element i + 16 in its high nibble; x = d * q + m. Q4_0: no minimum; x = d * (q - 8). Q8_0: f16 d, 32 int8; x = d * q.
All in float32, one rounding at most (d * q is exact: 11 + 8 bits of mantissa).
"""
import numpy as np


def _halves(block_bytes):
    return np.ascontiguousarray(block_bytes).view(np.float16).astype(np.float32)


def _nibbles(block_bytes):
    return np.concatenate([block_bytes & 15, block_bytes >> 4], axis=-1).astype(np.float32)


def expand(kind, data, shape):
    """float32 array of `shape` from the raw bytes of a tensor; kind is the GGUF type's name."""
    data = np.ascontiguousarray(data)
    if kind in ("F32", "F16"):
        return data.view(np.float32 if kind == "F32" else np.float16).reshape(shape).astype(np.float32)
    size = {"Q4_0": 18, "Q4_1": 20, "Q8_0": 34}.get(kind)
    if size is None:
        raise ValueError(f"no expansion of {kind} here; the reference handles F32, F16, Q4_0, Q4_1 and Q8_0")
    blocks = data.view(np.uint8).reshape(-1, size)
    scale = _halves(blocks[:, :2])
    if kind == "Q4_1":
        values = scale * _nibbles(blocks[:, 4:]) + _halves(blocks[:, 2:4])
    elif kind == "Q4_0":
        values = scale * (_nibbles(blocks[:, 2:]) - 8)
    else:
        values = scale * blocks[:, 2:].view(np.int8).astype(np.float32)
    return values.reshape(shape)
