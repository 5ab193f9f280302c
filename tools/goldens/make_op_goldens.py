#!/usr/bin/env python3
"""Writes OUT/{delta,conv,gates,gated_norm,l2norm}.safetensors: inputs, float32 results of transformers' functions
(suffix .hf) and float64 results of our own numpy, written from model-spec 1.3 and 1.6 (suffix .f64).
Tensors are named <case>.<tensor>. Usage: make_op_goldens.py OUT"""

import os
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers.models.qwen3_5 import modeling_qwen3_5 as hf

SILU = "silu"


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def l2norm64(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def delta64(q, k, v, g, beta, state):
    """Step form in float64 for one stream: q, k [T, nk, Dk], v [T, nv, Dv], state [nv, Dk, Dv]."""
    q, k, v, g, beta, s = (np.asarray(x, np.float64) for x in (q, k, v, g, beta, state))
    repeat = v.shape[1] // q.shape[1]
    q = np.repeat(l2norm64(q) * q.shape[-1] ** -0.5, repeat, 1)
    k = np.repeat(l2norm64(k), repeat, 1)
    out, s = np.zeros(v.shape), s.copy()
    for t in range(v.shape[0]):
        for h in range(v.shape[1]):
            s[h] *= np.exp(g[t, h])
            d = beta[t, h] * (v[t, h] - s[h].T @ k[t, h])
            s[h] += np.outer(k[t, h], d)
            out[t, h] = s[h].T @ q[t, h]
    return out, s


def delta_cases(rng):
    out = {}
    for name, (t, nk, nv, dk, dv, start) in {"equal": (70, 2, 2, 32, 32, False), "grouped": (65, 2, 4, 32, 32, True),
                                             "odd": (33, 3, 6, 16, 24, True), "real": (12, 1, 2, 128, 128, True),
                                             "one": (1, 2, 4, 64, 64, True)}.items():
        q, k = (rng.standard_normal((t, nk, dk)).astype(np.float32) for _ in range(2))
        v = rng.standard_normal((t, nv, dv)).astype(np.float32)
        g = -np.abs(rng.standard_normal((t, nv))).astype(np.float32) * rng.choice([0.01, 0.3, 3.0], (1, nv)).astype(np.float32)
        beta = sigmoid(rng.standard_normal((t, nv))).astype(np.float32)
        s0 = (rng.standard_normal((nv, dk, dv)) * 0.3 * start).astype(np.float32)
        args = [torch.from_numpy(x)[None] for x in (q, k, v, g, beta, s0)]
        more = {"initial_state": args[5], "output_final_state": True, "use_qk_l2norm_in_kernel": True}
        o, s = hf.torch_recurrent_gated_delta_rule(*args[:5], **more)
        oc, sc = hf.torch_chunk_gated_delta_rule(*args[:5], **more)
        o64, s64 = delta64(q, k, v, g, beta, s0)
        out.update({f"{name}.{n}": x for n, x in {"q": q, "k": k, "v": v, "g": g, "beta": beta, "state": s0, "o.hf": o[0].numpy(),
                    "state_after.hf": s[0].numpy(), "o_chunked.hf": oc[0].numpy(), "state_after_chunked.hf": sc[0].numpy(),
                    "o.f64": o64, "state_after.f64": s64}.items()})
    return out


def conv_cases(rng):
    """x [T, C], weight [C, K], state [K - 1, C] = the rows before x."""
    out = {}
    for name, (t, c, k, start) in {"cold": (9, 40, 4, False), "warm": (6, 40, 4, True), "one": (1, 24, 4, True),
                                   "short": (2, 24, 4, True), "three_taps": (7, 16, 3, True)}.items():
        x = rng.standard_normal((t, c)).astype(np.float32)
        w = rng.standard_normal((c, k)).astype(np.float32) * 0.5
        state = (rng.standard_normal((k - 1, c)) * start).astype(np.float32)
        rows = np.concatenate([state, x])
        y = hf.causal_conv1d_fn(torch.from_numpy(rows.T.copy())[None], torch.from_numpy(w), activation=SILU)[0].numpy().T[k - 1:]
        sums = sum(rows[j:j + t].astype(np.float64) * w[:, j].astype(np.float64) for j in range(k))
        out.update({f"{name}.{n}": np.ascontiguousarray(a) for n, a in {"x": x, "weight": w, "state": state, "y.hf": y,
                    "y.f64": sums * sigmoid(sums), "state_after": rows[-(k - 1):]}.items()})
    return out


def gate_cases(rng):
    a, b = (rng.standard_normal((12, 8)).astype(np.float32) * 6 for _ in range(2))
    a[0, 0], a[1, 1] = 30.0, -30.0
    a_log, dt = (rng.standard_normal(8).astype(np.float32) for _ in range(2))
    ta, tb, tl, td = (torch.from_numpy(x) for x in (a, b, a_log, dt))
    a64, b64, l64, d64 = (x.astype(np.float64) for x in (a, b, a_log, dt))
    return {"x.a": a, "x.b": b, "x.A_log": a_log, "x.dt_bias": dt, "x.beta.hf": tb.sigmoid().numpy(),
            "x.g.hf": (-tl.exp() * torch.nn.functional.softplus(ta + td)).numpy(), "x.beta.f64": sigmoid(b64),
            "x.g.f64": -np.exp(l64) * np.logaddexp(0, a64 + d64)}


def gated_norm_cases(rng):
    out = {}
    for width in (32, 128):
        x, z = (rng.standard_normal((10, width)).astype(np.float32) * 2 for _ in range(2))
        x[0] *= 1e-4
        w = (1 + 0.2 * rng.standard_normal(width)).astype(np.float32)
        module = hf.Qwen3_5RMSNormGated(width, eps=1e-6)
        module.weight.data = torch.from_numpy(w)
        x64, z64 = x.astype(np.float64), z.astype(np.float64)
        y64 = x64 / np.sqrt((x64**2).mean(-1, keepdims=True) + 1e-6) * w * z64 * sigmoid(z64)
        with torch.no_grad():
            y = module(torch.from_numpy(x), torch.from_numpy(z)).numpy()
        out.update({f"w{width}.{n}": a for n, a in {"x": x, "z": z, "weight": w, "y.hf": y, "y.f64": y64}.items()})
    return out


def l2norm_cases(rng):
    x = rng.standard_normal((9, 128)).astype(np.float32)
    x[0], x[1] = 0, x[1] * 1e-3
    return {"x.x": x, "x.y.hf": hf.l2norm(torch.from_numpy(x)).numpy(), "x.y.f64": l2norm64(x.astype(np.float64))}


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    makers = {"delta": delta_cases, "conv": conv_cases, "gates": gate_cases, "gated_norm": gated_norm_cases, "l2norm": l2norm_cases}
    for i, (name, make) in enumerate(makers.items()):
        tensors = make(np.random.default_rng(50 + i))
        for key in [k for k in tensors if k.endswith(".hf")]:
            exact = tensors[key.replace("_chunked", "")[:-3] + ".f64"]
            error = np.abs(tensors[key] - exact).max() / np.abs(exact).max()
            assert error < 2e-5, (name, key, error)
        save_file({k: np.ascontiguousarray(v) for k, v in sorted(tensors.items())}, os.path.join(sys.argv[1], name + ".safetensors"))
        print(name, len(tensors), "tensors", os.path.getsize(os.path.join(sys.argv[1], name + ".safetensors")), "bytes")


if __name__ == "__main__":
    main()
