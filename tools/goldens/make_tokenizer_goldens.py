#!/usr/bin/env python3
"""Makes tests/golden/text: a small byte-level BPE tokenizer of our own and what Hugging Face's `tokenizers` does with it.

Needs `pip install tokenizers` (the files in the repository were made with 0.23.3). Trains on tests/data/ordinary_text.txt
and writes tokenizer.json (the base) and tokenizer_goldens.json: variants, each a JSON merge patch to the base, with
each text, its ids, and the ids decoded with and without special tokens. Run from anywhere: python tools/goldens/make_tokenizer_goldens.py
"""
import json
import pathlib
import random

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "golden" / "text"
MERGES = 320
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
QWEN35 = QWEN2.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]+", r"[^\s\p{L}\p{M}\p{N}]+")
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
PLAIN_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
GPT2_BYTES = {**PLAIN_BYTES, "use_regex": True}
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


def added(text, *flags):
    return {"content": text, **{flag: flag in flags for flag in FLAGS}}


# The plain ones are as Qwen has them; the others have each flag alone and some together.
ADDED = [
    added("<|endoftext|>", "special"), added("<|im_start|>", "special"), added("<|im_end|>", "special"),
    added("<think>"), added("</think>"), added("<tool_call>"), added("<think><tool"),
    added("[W]", "single_word"), added("word", "single_word", "normalized"), added("[L]", "lstrip"),
    added("[R]", "rstrip", "special"), added("[LR]", "lstrip", "rstrip"), added("caf\u00e9", "normalized"),
    added("re\u0301sume\u0301", "normalized"), added("n\u0303"), added("\u20ac5", "single_word", "lstrip", "rstrip"),
]

FIXED = [
    "", " ", "  ", "\n", "\n\n\t x", " a", "a ", "Hello, world!", "Hello world! 123", "  multiple   spaces",
    "I'm they'RE we'Ve it'S 'ſ", "don’t", "Caf\u00e9 de\u0301ja\u0300 vu.", "x=1;y+=2;//c", "a\r\nb\rc\n \r\n ", "trailing   ",
    "1234567 67,890.12 3.14e-10 \u00bd\u00b2\u2167\u0663\u0664", "\u0939\u093f\u0928\u094d\u0926\u0940 \u0644\u064e\u0627",
    "\u1100\u1161\u11a8 \ud55c\uad6d\uc5b4", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8", "\U0001f600\U0001f469\u200d\U0001f467",
    "\u00a0nbsp\u3000wide\u180emvs\u0085nel\u2028", "a\u0323\u0307\u0301 a\u0307\u0323 \u0344\u212b\ufb1d", "\x00\x01\x1f",
    "<|im_start|>user\nhi<|im_end|>\n", "<|endoftext|><|endoftext|>", " <|im_end|> ", "<think>\n\n</think>\n\n", "<think><tool_call>",
    "<|im_<|im_end|", "[W] a[W] [W]b ([W])_[W]-[W]\u0301", "word words word. sword \u00e9word word\u0301 word\u200d", "a  [L] b [L][L]  [L]",
    "[R]  a [R]\n\n[R] <think>", "  [LR]  [LR]  x", "cafe\u0301 caf\u00e9 CAF\u00c9", "resume\u0301 r\u00e9sum\u00e9", "ma\u00f1ana man\u0303ana",
    "\u20ac5 a \u20ac5 b \u20ac55", "\n[L]\u3000[R]\u3000x",
]
POOLS = [
    list("abcdefghijklmnopqrstuvwxyz"), list("ABCXYZ"), list("0123456789"), list(" \t\n\r"), list(".,;:!?'\"()[]{}<>|/_-"),
    ["'s", "'T", "'re", "'LL"], list("\u00e9\u00e8\u00fc\u00f1\u00df\u00f8"), list("\u0301\u0323\u0327\u0308"),
    list("\u0430\u0431\u0432\u0433"), list("\u05d0\u05d1\u05b7"), list("\u0928\u092e\u0938\u094d\u0924\u0947"), list("\u4eba\u5b57\u540d"),
    list("\u1100\u1161\u11a8\uac00"), list("\u00a0\u2003\u3000"), list("\u00bd\u00b2\u2460"), list("\U0001f680\U0001f389\U0001f3fd"),
    ["<|im_end|>", "<think>", "[W]", "[L]", "[R]", "word"],
]


def random_texts(seed, count):
    dice = random.Random(seed)
    words = (ROOT / "tests" / "data" / "ordinary_text.txt").read_text(encoding="utf-8").split()
    for _ in range(count):
        pools = dice.sample(POOLS, 3) + [words]
        parts = [dice.choice(dice.choice(pools)) * dice.choice([1, 1, 1, 2, 5]) for _ in range(dice.randint(2, 14))]
        yield dice.choice(["", " "]).join(parts)


def base():
    text = (ROOT / "tests" / "data" / "ordinary_text.txt").read_text(encoding="utf-8")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=256 + MERGES, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator([text], trainer)
    result = json.loads(tokenizer.to_str())
    first = len(result["model"]["vocab"])
    result["added_tokens"] = [{"id": first + i, **token} for i, token in enumerate(ADDED)]
    result["normalizer"] = {"type": "NFC"}
    result["pre_tokenizer"] = split(QWEN2)
    result["decoder"] = PLAIN_BYTES
    return result


def split(regex, behavior="Isolated", invert=False, kind="Regex"):
    step = {"type": "Split", "pattern": {kind: regex}, "behavior": behavior, "invert": invert}
    return {"type": "Sequence", "pretokenizers": [step, PLAIN_BYTES]}


def without_bytes(model, unknown):
    """A patch that takes some bytes out of the vocabulary, with their merges, and sets the unknown token.

    Their ids stay taken, for the library numbers added tokens anew where ids have holes.
    """
    gone = dict.fromkeys(("\u00c0", "\u00e9", "\u00cc", "q", "z", "X"))
    gone = {token: None for token in model["vocab"] if any(letter in token for letter in gone)}
    merges = [merge for merge in model["merges"] if not gone.keys() & {*merge, "".join(merge)}]
    fillers = {f"<gone {token}>": model["vocab"][token] for token in gone}
    return {"vocab": {**gone, **fillers}, "merges": merges, "unk_token": unknown}


def variants(model):
    def pre(*steps):
        return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": list(steps)}}

    digits = {"type": "Digits", "individual_digits": True}
    yield "qwen2", {}
    yield "qwen35", {"pre_tokenizer": split(QWEN35)}
    yield "smollm", {"normalizer": None, **pre(digits, GPT2_BYTES)}
    yield "gpt2", {"normalizer": None, "pre_tokenizer": GPT2_BYTES}
    yield "prefix_space", {"pre_tokenizer": {**GPT2_BYTES, "add_prefix_space": True}}
    yield "llama3", {"pre_tokenizer": split(LLAMA3), "model": {"ignore_merges": True}}
    yield "digits_runs", pre({**digits, "individual_digits": False}, PLAIN_BYTES)
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        yield f"split_{behavior}", {"pre_tokenizer": split("[aeiou ]", behavior)}
        yield f"split_{behavior}_inverted", {"pre_tokenizer": split("[aeiou ]|$", behavior, True)}
    yield "literal", {"pre_tokenizer": split("a.", "Isolated", kind="String")}
    yield "unknown", {"model": without_bytes(model, "a")}
    yield "unknown_fused", {"model": {**without_bytes(model, "a"), "fuse_unk": True}}
    yield "dropped", {"model": without_bytes(model, None)}


def merge_patch(value, patch):
    """RFC 7396, as the test applies it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, part in patch.items():
        if part is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), part)
    return result


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    original = base()
    (OUT / "tokenizer.json").write_text(json.dumps(original, indent=1) + "\n", encoding="utf-8")
    made = []
    for seed, (name, patch) in enumerate(variants(original["model"])):
        full = merge_patch(original, patch)
        # A field that a patch removes is absent to us; the library wants null.
        full["model"].setdefault("unk_token", None)
        full.setdefault("normalizer", None)
        reference = Tokenizer.from_str(json.dumps(full))
        first_added = original["added_tokens"][0]["id"]
        cases = []
        for text in FIXED + list(random_texts(seed, 15)):
            ids = reference.encode(text, add_special_tokens=False).ids
            decodings = [reference.decode(ids, skip_special_tokens=skip) for skip in (False, True)]
            # The library reads an added "\u00e9" in the byte alphabet and so decodes it to a broken byte; we do not.
            broken = any("\u00e9" in (reference.id_to_token(i) or "") and i >= first_added for i in ids)
            cases.append([text, ids] if broken else [text, ids, *decodings])
        made.append({"name": name, "patch": patch, "cases": cases})
    note = f"Made by tools/goldens/make_tokenizer_goldens.py with tokenizers {tokenizers.__version__}."
    lines = [json.dumps(variant) for variant in made]
    text = '{"note": ' + json.dumps(note) + ',\n"variants": [\n' + ",\n".join(lines) + "\n]}\n"
    (OUT / "tokenizer_goldens.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
