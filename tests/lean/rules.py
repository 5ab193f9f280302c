"""The rules of the code itself, one function each: takes a Source, yields (line, message) for what breaks it.

The list RULES at the end is what lean.py runs; CONTRIBUTING.md says the rules in prose.
"""
import ast
import re

import cpp

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 100
FUNCTION_MACROS = {"CHECK", "CUDA_CHECK"}
READS_ENVIRONMENT = "src/base/config.cc"
ONE_FORWARD = ("src/model/", "src/ops/", "src/backend/")


class Source:
    """One file: its path in the repository, its kind (cpp, python, shell, cmake, prose, data) and its text."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.split("\n")
        if text.endswith("\n"):
            self.lines.pop()
        self.kind = _kind(path, self.lines[0] if self.lines else "")
        self.code, self.comments = cpp.split(text) if self.kind == "cpp" else (text, _hash_comments(self))

    def is_code(self):
        return self.kind in ("cpp", "python", "shell", "cmake")


def _kind(path, first_line):
    name = path.rsplit("/", 1)[-1]
    suffix = name.rsplit(".", 1)[-1] if "." in name.lstrip(".") else ""
    if suffix in ("h", "hpp", "cc", "cpp", "cu", "cuh"):
        return "cpp"
    if suffix == "py" or re.match(r"#!.*python", first_line):
        return "python"
    if suffix == "sh" or re.match(r"#!.*\b(ba)?sh\b", first_line):
        return "shell"
    if suffix == "cmake" or name == "CMakeLists.txt":
        return "cmake"
    return "prose" if suffix == "md" else "data"


def _hash_comments(source):
    if source.kind not in ("python", "shell", "cmake"):
        return []
    pairs = enumerate(source.lines, start=1)
    return [(number, line.strip()[1:].strip()) for number, line in pairs if re.match(r"\s*#(?!!)", line)]


def head(source):
    """The comment or docstring that opens the file, as text; empty when there is none."""
    lines = source.lines[1:] if source.lines and source.lines[0].startswith("#!") else source.lines
    text = "\n".join(lines).lstrip()
    if source.kind == "cpp":
        match = re.match(r"(?:[ \t]*//[^\n]*\n?)+|/\*.*?\*/", text, re.S)
    elif source.kind == "python":
        match = re.match(r'(?:#[^\n]*\n?)+|[rR]?""".*?"""', text, re.S)
    else:
        match = re.match(r"(?:#[^\n]*\n?)+", text)
    return match.group() if match else ""


def opens_with_contract(source):
    if not source.is_code() or source.path.endswith("CMakeLists.txt") or not source.text.strip():
        return
    if not head(source):
        yield 1, "opens without a comment that says what the file is"


def file_length(source):
    if source.is_code() and len(source.lines) > MAX_FILE_LINES and "Long because" not in head(source):
        yield 1, f"{len(source.lines)} lines; past {MAX_FILE_LINES} the head must say \"Long because ...\""


def _function_spans(source):
    if source.kind == "cpp":
        return cpp.functions(source.code)
    if source.kind == "python":
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [(n.lineno, n.end_lineno) for n in ast.walk(ast.parse(source.text)) if isinstance(n, kinds)]
    return []


def function_length(source):
    if "Long because" in head(source):
        return
    for first, last in _function_spans(source):
        if last - first + 1 > MAX_FUNCTION_LINES:
            yield first, f"a function of {last - first + 1} lines; past {MAX_FUNCTION_LINES} the file's head must say " \
                '"Long because ..."'


def environment(source):
    if source.kind != "cpp" or source.path == READS_ENVIRONMENT:
        return
    for number, line in enumerate(source.code.split("\n"), start=1):
        if re.search(r"\b(?:secure_)?getenv\b|\benviron\b", line):
            yield number, f"reads the environment; only {READS_ENVIRONMENT} may"


def macros(source):
    if source.kind != "cpp":
        return
    for number, line in enumerate(source.code.split("\n"), start=1):
        match = re.match(r"\s*#\s*define\s+(\w+)\(", line)
        if match and match.group(1) not in FUNCTION_MACROS:
            yield number, f"function-like macro {match.group(1)}; write a function, or a lambda over integral_constant"


_CPP_CODE = re.compile(
    r"[}\])]*[}\]);]*;?$(?<=[};])"  # } }; });
    r"|#\s*(?:include\s*[<\"]|define\s+\w|if\s+|ifdef\s|ifndef\s|endif$|pragma\s)"
    r"|(?:if|for|while|switch|else)\b.*[{;]$"
    r"|(?:return|delete|break|continue|throw|goto|using|case|default)\b[^.]*;$"
    r"|[\w:<>,&*\s\[\].()-]+\s[-+*/|&]?=\s.*;$"  # an assignment or a definition with a value
    r"|(?:const |static |auto |unsigned |int |float |bool |char |double |size_t |std::)[\w:<>,&*\s\[\]]+;$"
    r"|[\w:.<>-]+\(.*\);$"  # a call
    r"|.*\)(?: const)?(?: noexcept)?\s*\{$"
)


def _is_python_code(comment):
    try:
        body = ast.parse(comment).body
    except (SyntaxError, ValueError):
        return bool(re.match(r"(?:def|class|if|for|while|with|elif|try|except)\b.*:$", comment))
    statement = body[0] if body else None
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    if isinstance(statement, ast.Assign):
        return isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Attribute)
    return isinstance(statement, (ast.Import, ast.ImportFrom, ast.Return, ast.AugAssign, ast.Delete, ast.Raise))


def commented_out_code(source):
    for number, comment in source.comments:
        if source.kind == "cpp":
            found = bool(comment) and _CPP_CODE.match(comment)
        elif source.kind == "python":
            found = bool(comment) and _is_python_code(comment)
        else:
            found = re.match(r"[a-z_]+\([^()]*\)$", comment) if source.kind == "cmake" else None
        if found:
            yield number, f"commented-out code: {comment[:60]}"


_LEFT_OVER = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")


def left_over_notes(source):
    if source.kind == "data":
        return
    for number, line in enumerate(source.lines, start=1):
        match = _LEFT_OVER.search(line)
        if match:
            yield number, f"a {match.group()} is left"


_WEIGHT_WORD = re.compile(
    r"(?:q|iq)\d.*|[uif]\d+|bf16|fp8|fp4|f8|e4m3|e5m2|e8m0|e2m1|affine|mx\w*|nv\w*|weights?|groups?|blocks?|scales?|"
    r"nibbles?|quant\w*|utf8?|utf16",
    re.I,
)


def _is_twin(name):
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]
    if "prefill" in words:
        return True
    return "decode" in words and not any(_WEIGHT_WORD.fullmatch(word) for word in words)


def one_forward(source):
    if not source.path.startswith(ONE_FORWARD):
        return
    message = "\"{}\" names a twin: there is one forward (a weight's decoder names its format)"
    stem = source.path.rsplit("/", 1)[-1].split(".")[0]
    if _is_twin(stem):
        yield 1, message.format(stem)
    if source.kind != "cpp":
        return
    for number, line in enumerate(source.code.split("\n"), start=1):
        for match in re.finditer(r"(quant::)?\b([A-Za-z_]\w*)", line):
            if not match.group(1) and _is_twin(match.group(2)):
                yield number, message.format(match.group(2))


_MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:work|root)/|/tmp/(?:wt|peer|ref)\b")
_REGISTRY = re.compile(
    r"\b(?:pypi|files\.pythonhosted|(?:deb|security|ftp)\.debian|registry\.npmjs|proxy\.golang|(?:static|index)\.crates|"
    r"repo\.maven\.apache)\.(?:org|io)\b"
)


def machine_names(source):
    for number, line in enumerate(source.lines, start=1):
        for pattern, what in ((_MACHINE_PATH, "a path of one machine"), (_REGISTRY, "a registry's host")):
            match = pattern.search(line)
            if match:
                yield number, f"{what}: {match.group()}"


RULES = {
    "contract": opens_with_contract,
    "file-length": file_length,
    "function-length": function_length,
    "environment": environment,
    "macro": macros,
    "commented-out": commented_out_code,
    "left-over": left_over_notes,
    "one-forward": one_forward,
    "machine": machine_names,
}
