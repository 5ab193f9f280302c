"""tools/make_model.py: one seed gives equal bytes, files stay whole when split, and the program runs what it makes."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import make_model  # noqa: E402

IDS = [1, 5, 9, 200, 33, 77, 401, 8, 9, 10, 11, 12]


def make(out, *options):
    command = [sys.executable, "-B", str(TOOLS / "make_model.py"), str(out), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def read(path):
    """name: (dtype, shape, bytes)."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__")
    return {name: (entry["dtype"], entry["shape"], data[start:][slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def widen(raw):
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)


def expand(tensors, name, bits):
    """The expanded matrix of 4- or 8-bit codes."""
    rows, words = tensors[name + ".weight"][1]
    codes = np.frombuffer(tensors[name + ".weight"][2], "<u4").reshape(rows, words, 1)
    codes = (codes >> np.arange(0, 32, bits, dtype=np.uint32)) & (2**bits - 1)
    scales, biases = (widen(tensors[name + part][2]).reshape(rows, -1, 1) for part in (".scales", ".biases"))
    return (codes.reshape(rows, scales.shape[1], -1) * scales + biases).reshape(rows, -1)


def score(folder, ids, out):
    ids_file = out.with_suffix(".json")
    ids_file.write_text(json.dumps(ids), encoding="utf-8")
    command = [os.environ["STEADFAST_PROGRAM"], "score", str(folder), "--ids", str(ids_file), "--out", str(out)]
    subprocess.run(command, check=True)
    return np.load(out)


def test_one_seed_gives_equal_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        assert make(tmp_path / name, "--seed", seed).returncode == 0
    first, again, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert first == again
    assert first != other
    assert (tmp_path / "a/config.json").read_bytes() == (tmp_path / "b/config.json").read_bytes()


@pytest.mark.parametrize("bits", [4, 8])
def test_expanded_weights_have_the_promised_scale(tmp_path, bits):
    assert make(tmp_path / "m", "--bits", str(bits)).returncode == 0
    tensors = read(tmp_path / "m/model.safetensors")
    for module in ("mlp.down_proj", "linear_attn.in_proj_qkv"):
        matrix = expand(tensors, f"language_model.model.layers.0.{module}", bits)
        assert abs(matrix.std() * np.sqrt(matrix.shape[1]) - 1) < 0.05
        assert abs(matrix.mean()) < 0.02 * matrix.std()


def test_decays_lie_in_their_range(tmp_path):
    assert make(tmp_path / "m", "--linear-value-heads", "64").returncode == 0
    tensors = read(tmp_path / "m/model.safetensors")
    name = "language_model.model.layers.0.linear_attn"
    speed = np.exp(np.frombuffer(tensors[name + ".A_log"][2], "<f4"))
    decay = np.exp(-speed * np.log1p(np.exp(widen(tensors[name + ".dt_bias"][2]))))
    assert decay.min() > 0.49 and decay.max() < 0.99991  # BF16 rounds dt_bias
    assert decay.min() < 0.7 and decay.max() > 0.999


def test_a_split_model_holds_the_same_tensors(tmp_path, monkeypatch):
    assert make(tmp_path / "whole").returncode == 0
    monkeypatch.setattr(make_model, "SHARD_BYTES", 100_000)
    monkeypatch.setattr(sys, "argv", ["make_model.py", str(tmp_path / "split")])
    make_model.main()
    index = json.loads((tmp_path / "split/model.safetensors.index.json").read_text(encoding="utf-8"))
    files = sorted(set(index["weight_map"].values()))
    assert len(files) > 2
    parts = {name: entry for file in files for name, entry in read(tmp_path / "split" / file).items()}
    assert parts == read(tmp_path / "whole/model.safetensors")
    logits = [score(tmp_path / name, IDS, tmp_path / (name + ".npy")) for name in ("whole", "split")]
    assert np.array_equal(*logits)


@pytest.mark.parametrize("options", [
    [], ["--bits", "3", "--no-tied"], ["--family", "llama", "--bits", "6", "--group", "32"]])
def test_logits_are_finite_and_of_an_ordinary_scale(tmp_path, options):
    assert make(tmp_path / "m", *options).returncode == 0
    logits = score(tmp_path / "m", IDS, tmp_path / "logits.npy")
    assert logits.shape == (len(IDS), 512)
    assert np.isfinite(logits).all()
    assert 0.1 < logits.std() < 30


def test_bad_options_are_refused_with_a_sentence(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("x", encoding="utf-8")
    for out, options, words in (("full", [], "not empty"), ("m", ["--hidden", "100"], "multiples of --group"),
                                ("n", ["--heads", "3"], "must divide"), ("o", ["--layers", "0"], "at least 1")):
        done = make(tmp_path / out, *options)
        assert done.returncode != 0
        assert words in done.stderr and "Traceback" not in done.stderr
