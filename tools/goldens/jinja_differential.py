"""Compares the engine with Jinja2 on random templates: both must print the same text, or both must fail.

    python3 tools/goldens/jinja_differential.py build/dev/tests/support/jinja_lines [--count 2000] [--seed 1] [--golden]
        [--templates FOLDER]

Templates are put together from a grammar of expressions and statements over the golden cases' context (--golden runs
the golden cases themselves). With --templates, every .jinja file of a folder renders the golden conversations instead:
a check against the templates of real models, which are not ours to keep here. Differences are printed; the exit status is 1 if there are any. What the engine refuses
by design (limits, integers past 127 bits, errors that Jinja2 folds away) is counted apart.
"""
import argparse
import copy
import json
import pathlib
import random
import re
import subprocess
import sys

import chat_cases
import hf_jinja
import jinja_cases

BY_DESIGN = re.compile(r"127 bits|MiB|steps|nests|nested|not supported|too big|at most|more than|must be from|subscriptable|be sliced")
NAMES = list(jinja_cases.CONTEXT) + ["missing", "x", "y"]
LITERALS = ["0", "1", "2", "-3", "1.5", "'a'", "'b,c'", "' x '", "''", "true", "false", "none", "[]", "[1, 2]", "{}",
            "{'a': 1}", "(1, 2)", "'é日'", "1e3", "range(3)", "['b', 'a']"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">", "<=", ">=", "and", "or", "in", "not in", "**"]
FILTERS = ["trim", "upper", "lower", "title", "capitalize", "length", "first", "last", "list", "join", "join('-')",
           "sort", "reverse | list", "string", "int", "float", "abs", "round", "round(1)", "tojson", "tojson(indent=2)", "unique | list",
           "min", "max", "sum", "default('d')", "default('d', true)", "replace('a', 'zz')", "map('string') | list", "select | list",
           "map(attribute='name') | list", "selectattr('age') | list", "reject('none') | list", "items | list", "dictsort", "indent(2)", "safe",
           "escape", "count", "batch(2) | list", "map('upper') | list", "select('string') | list", "wordcount", "center(9)", "truncate(4)",
           "slice(2) | list", "groupby('age')", "sort(attribute='name')", "sort(reverse=true)", "attr('name')", "e", "d"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "iterable",
         "mapping", "sequence", "odd", "even", "divisibleby 2", "sameas none", "lower", "upper", "in 'abc'", "eq 1",
         "callable", "gt 1"]
METHODS = ["strip()", "upper()", "lower()", "split()", "split(',')", "split('a', 1)", "startswith('a')", "endswith('x')",
           "replace('a', 'b')", "title()", "items()", "keys()", "values()", "get('name')", "get('q', 5)", "count('a')",
           "index(1)", "find('a')", "join(['x', 'y'])", "lstrip('Ha ')", "rstrip()", "append(1)", "isdigit()", "zfill(4)",
           "splitlines()", "capitalize()", "swapcase()", "rsplit(',', 1)", "partition(',')", "center(8, '*')", "format(1, 2)",
           "isalpha()", "istitle()", "rfind('o')", "removeprefix('A')", "ljust(6)", "expandtabs()"]
SUBSCRIPTS = ["[0]", "[-1]", "['name']", "['a']", "[1:]", "[::-1]", "[:2]", "[-2:]", "[0:5:2]", ".name", ".tags", ".x", ".0", "[5]",
              "[none]", "[::2]", "[-1:0:-1]"]


class Maker:
    """Random pieces of templates. Expressions that Jinja2 can evaluate are kept and built upon; few of the others are."""

    def __init__(self, rng, env, size):
        self.rng = rng
        self.pool = [name for name in NAMES[:-2] for _ in range(3)] + LITERALS
        while len(self.pool) < size:
            made = self.combination()
            text = hf_jinja.render(env, "{{ " + made + " }}", copy.deepcopy(jinja_cases.CONTEXT)).get("text")
            if len(made) < 160 and (self.rng.random() < 0.1 if text is None else len(text) < 3000):
                self.pool.append(made)

    def expression(self):
        return self.pick(self.pool) if self.rng.random() < 0.85 else self.pick(["x", "y"])

    def pick(self, options):
        return self.rng.choice(options)

    def combination(self):
        roll = 0.2 + 0.8 * self.rng.random()
        inner = self.pick(self.pool)
        if roll < 0.42:
            return f"{inner} {self.pick(BINARY)} {self.pick(self.pool)}"
        if roll < 0.6:
            return f"{self.maybe_group(inner)} | {self.pick(FILTERS)}"
        if roll < 0.68:
            return f"{self.maybe_group(inner)} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if roll < 0.76:
            return f"({inner}).{self.pick(METHODS)}"
        if roll < 0.86:
            return f"({inner}){self.pick(SUBSCRIPTS)}"
        if roll < 0.9:
            return f"{inner} if {self.pick(self.pool)} else {self.pick(self.pool)}"
        if roll < 0.94:
            return f"[{inner}, {self.pick(self.pool)}]"
        if roll < 0.96:
            return f"{{'k': {inner}, 'l': {self.pick(self.pool)}}}"
        return f"{self.pick(['not ', '-', '+', ''])}({inner})"

    def maybe_group(self, text):
        return f"({text})" if self.rng.random() < 0.7 else text

    def tag(self, body):
        return "{%" + self.pick(["", "", "-", "+"]) + " " + body + " " + self.pick(["", "", "-"]) + "%}"

    def text(self):
        return self.pick(["a", " b ", "\n", "  \n  ", "", "c\n\n", "\t", "{", "} ", "é "])

    def statement(self, depth):
        roll = self.rng.random()
        if depth <= 0 or roll < 0.45:
            return "{{" + self.pick(["", "-"]) + " " + self.expression() + " " + self.pick(["", "-"]) + "}}"
        body = self.block(depth - 1)
        if roll < 0.58:
            other = self.tag("else") + self.block(depth - 1) if self.rng.random() < 0.5 else ""
            return self.tag(f"if {self.expression()}") + body + other + self.tag("endif")
        if roll < 0.75:
            test = f" if {self.expression()}" if self.rng.random() < 0.3 else ""
            loop = self.pick(["", "{{ loop.index }}", "{{ loop.last }}", "{{ loop.nextitem }}", "{{ loop.length }}", "{{ y }}"])
            source = self.pick(["numbers", "words", "people", "user", "range(3)", self.expression()])
            return self.tag(f"for y in {source}{test}") + loop + body + self.tag("endfor")
        if roll < 0.88:
            return self.tag(f"set {self.pick(['x', 'y'])} = {self.expression()}")
        if roll < 0.93:
            return self.tag("set x") + body + self.tag("endset")
        return self.tag(f"macro m(x, y={self.pick(LITERALS)})") + body + self.tag("endmacro") + "{{ m(" + self.expression() + ") }}"

    def block(self, depth):
        return "".join(self.text() + self.statement(depth) for _ in range(self.rng.randint(1, 3))) + self.text()


def same(expected, got):
    if "error" in expected or "error" in got:
        return "error" in expected and "error" in got
    # Python prints addresses of its own objects; the engine does not.
    clean = re.sub(r"<[^<>]*(?:object|function|method)[^<>]*>", "<object>", expected["text"])
    return clean == re.sub(r"<[^<>]*(?:object|function|method)[^<>]*>", "<object>", got["text"])


def requests_of(options, env):
    """(template, context) of every comparison."""
    if options.templates:
        tokens = {"tools": None, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
        conversations = chat_cases.PLAIN + chat_cases.TOOLS + chat_cases.THINKING[:4] + chat_cases.ODD
        for path in sorted(pathlib.Path(options.templates).glob("*.jinja")):
            for case in conversations:
                context = {**tokens, **{k: v for k, v in case.items() if k != "kwargs"}, **case.get("kwargs", {})}
                yield path.read_text(encoding="utf-8"), context
        return
    if options.golden:
        lines = [line for line in jinja_cases.EXPRESSIONS.split("\n") if line]
        templates = [f"{{{{ {line} }}}}" for line in lines] + jinja_cases.TEMPLATES
    else:
        maker = Maker(random.Random(options.seed), env, options.count)
        templates = ["{{ " + made + " }}" for made in maker.pool] + [maker.block(2) for _ in range(options.count)]
    for template in templates:
        yield template, jinja_cases.CONTEXT


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--templates")
    options = parser.parse_args()
    env = hf_jinja.environment()
    pairs = list(requests_of(options, env))
    counts = {"same": 0, "both fail": 0, "by design": 0, "differ": 0}
    requests = "".join(json.dumps({"template": t, "context": c}) + "\n" for t, c in pairs)
    done = subprocess.run([options.engine], input=requests, capture_output=True, text=True, encoding="utf-8", check=True)
    for (template, context), line in zip(pairs, done.stdout.splitlines()):
        expected = hf_jinja.render(env, template, copy.deepcopy(context))
        got = json.loads(line)
        if same(expected, got):
            counts["both fail" if "error" in got else "same"] += 1
        elif BY_DESIGN.search(got.get("error", "")):
            counts["by design"] += 1
        else:
            counts["differ"] += 1
            print(f"{template[:300]!r} {str(context)[:300] if options.templates else ''}\n  Jinja2: {expected}\n  engine: {got}")
    print(counts)
    return 1 if counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
