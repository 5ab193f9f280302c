"""Writes the golden files of the template engine under tests/golden/text, rendered by Jinja2 as Hugging Face sets it up.

    python3 tools/goldens/make_template_goldens.py [--qwen3-config tokenizer_config.json --qwen3-cases cases.json]
        [--smollm2-gguf MODEL.gguf]

jinja_cases.json and chat_qwen3_5_rules.json need nothing else. The other two take their templates from a model's own
files, named on the command line; without the options they stay as they are.
"""
import argparse
import json
import pathlib
import struct

import chat_cases
import hf_jinja
import jinja_cases

GOLDEN = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "text"


def write(name, data):
    text = json.dumps(data, ensure_ascii=False, indent=1)
    (GOLDEN / name).write_text(text + "\n", encoding="utf-8")


def engine_cases():
    env = hf_jinja.environment()
    templates = [f"{{{{ {line} }}}}" for line in jinja_cases.EXPRESSIONS.split("\n") if line]
    cases = []
    for template in templates + jinja_cases.TEMPLATES:
        cases.append({"template": template, **hf_jinja.render(env, template, jinja_cases.CONTEXT)})
    return {"context": jinja_cases.CONTEXT, "cases": cases}


def chat(template, cases, tokens, origin):
    """Every case rendered: the context is what Hugging Face passes."""
    env = hf_jinja.environment()
    rendered = []
    for case in cases:
        context = {"tools": None, "documents": None, "add_generation_prompt": True, **tokens, **case}
        context.update(context.pop("kwargs", {}))
        rendered.append({**case, **hf_jinja.render(env, template, context)})
    return {"origin": origin, "template": template, "tokens": tokens, "cases": rendered}


def gguf_string(path, key):
    """The string value of a key: enough of the format for this one use."""
    data = pathlib.Path(path).read_bytes()[: 16 << 20]
    at = data.index(key.encode()) + len(key)
    kind, size = struct.unpack_from("<IQ", data, at)
    if kind != 8:
        raise SystemExit(f"{key} is not a string in {path}")
    return data[at + 12 : at + 12 + size].decode("utf-8")


def qwen3(config_path, cases_path):
    config = json.loads(pathlib.Path(config_path).read_text(encoding="utf-8"))
    given = json.loads(pathlib.Path(cases_path).read_text(encoding="utf-8"))
    golden = chat(
        config["chat_template"],
        [{"messages": c["messages"], "tools": c["tools"], "kwargs": c["kwargs"]} for c in given],
        {"eos_token": config["eos_token"]},
        "Template: tokenizer_config.json of Qwen/Qwen3 (Apache-2.0). Texts: checked against the project's shared goldens.",
    )
    for case, reference in zip(golden["cases"], given):
        if case["text"] != reference["rendered"]:
            raise SystemExit("the shared golden and Jinja2 disagree")
    golden["cases"] += chat(golden["template"], chat_cases.PLAIN + chat_cases.TOOLS, golden["tokens"], "")["cases"]
    return golden


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--qwen3-config")
    parser.add_argument("--qwen3-cases")
    parser.add_argument("--smollm2-gguf")
    options = parser.parse_args()
    write("jinja_cases.json", engine_cases())
    rules = (GOLDEN / "qwen3_5_rules.jinja").read_text(encoding="utf-8")
    cases = chat_cases.PLAIN + chat_cases.TOOLS + chat_cases.THINKING
    write("chat_qwen3_5_rules.json", chat(rules, cases, {"eos_token": "<|im_end|>"}, "Our own template of the family's rules."))
    if options.qwen3_config and options.qwen3_cases:
        write("chat_qwen3.json", qwen3(options.qwen3_config, options.qwen3_cases))
    if options.smollm2_gguf:
        template = gguf_string(options.smollm2_gguf, "tokenizer.chat_template")
        tokens = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
        origin = "Template: SmolLM2-135M-Instruct's GGUF file, tokenizer.chat_template (Apache-2.0)."
        write("chat_smollm2.json", chat(template, chat_cases.PLAIN, tokens, origin))


if __name__ == "__main__":
    main()
