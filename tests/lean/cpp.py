"""Reads C++ and CUDA sources without a compiler: code with comments and literals blanked, comments, function spans.

Line numbers start at 1 and stay true: blanking keeps every newline. Knows nothing of the rules (rules.py does).
"""
import re

_TOKEN = re.compile(
    r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'  # raw string
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"  # a character, not the separator of 1'000
    r"|//[^\n]*|/\*.*?\*/",
    re.S,
)
_SCOPE = re.compile(r"\s*(?:template\s*<.*>\s*)?(?:inline\s+)?(?:namespace|class|struct|union|enum|extern)\b", re.S)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def split(text):
    """(code, comments): code is `text` with comments and literals blanked; comments are (line, content) pairs."""
    code, comments, end = [], [], 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        code.append(text[end : match.start()])
        end = match.end()
        if token.startswith("//"):
            comments.append((text.count("\n", 0, match.start()) + 1, token[2:].strip(" /")))
        elif token.startswith("/*"):
            first = text.count("\n", 0, match.start()) + 1
            for offset, line in enumerate(token[2:-2].split("\n")):
                comments.append((first + offset, line.strip(" *")))
        if token.startswith(("/", "'")):
            code.append(_blank(token))
        else:  # keeps the quotes, so that `extern "C"` still reads as one
            code.append(re.sub(r"[^\n\"]", " ", token))
    code.append(text[end:])
    return "".join(code), comments


def without_directives(code):
    """Preprocessor lines (with their continuations) blanked, so that braces in macros count for nothing."""
    return re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: _blank(match.group()), code)


def _kind(head, enclosing):
    """What a `{` after `head` opens: a scope that holds functions, a function, or something inside one."""
    if any(kind != "scope" for kind in enclosing):
        return "inner"
    head = re.sub(r"\b(?:alignas|__attribute__)\s*\([^)]*\)", "", head)
    parenthesis, equals = head.find("("), head.find("=")
    if parenthesis < 0:
        return "scope" if _SCOPE.match(head) else "inner"
    if 0 <= equals < parenthesis and "operator" not in head[:parenthesis]:
        return "inner"
    return "function"


def functions(code):
    """(first line, last line) of every function body with its signature; lambdas count with the function they are in."""
    code = without_directives(code)
    spans, stack, boundary = [], [], 0
    for match in re.finditer(r"[{};]", code):
        position = match.start()
        if match.group() == "{":
            head = code[boundary:position]
            start = position - len(head.lstrip())
            stack.append((_kind(head, [kind for kind, _ in stack]), start))
        elif match.group() == "}" and stack:
            kind, start = stack.pop()
            if kind == "function":
                spans.append((code.count("\n", 0, start) + 1, code.count("\n", 0, position) + 1))
        boundary = position + 1
    return spans
