#!/usr/bin/env python3
"""The checker's own test: each rule finds its planted violation in a small tree, at its line, and leaves good code alone.

Words that the checker looks for are put together from parts, so that this file stays clean itself.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import lean

HEAD = "// A file of the test.\n"
FORMATTER = shutil.which("clang-format-14") or shutil.which("clang-format")


def body(lines):
    return "int f() {\n" + "  g();\n" * (lines - 2) + "}\n"


# name: (path, text, rule, line)
PLANTED = {
    "no contract, C++": ("src/a.cc", "#include <vector>\n", "contract", 1),
    "no contract, header": ("src/a.h", "#pragma once\n// Late.\n", "contract", 1),
    "no contract, Python": ("tools/a.py", "import os\n", "contract", 1),
    "no contract, shell": ("go", "#!/usr/bin/env bash\nset -e\n", "contract", 1),
    "no contract, CMake": ("cmake/a.cmake", "set(A 1)\n", "contract", 1),
    "long file": ("src/a.cc", HEAD + "int g();\n" * 600, "file-length", 1),
    "long Python file": ("a.py", '"""A."""\n' + "f()\n" * 600, "file-length", 1),
    "long function": ("src/a.cc", HEAD + "\n" + body(101), "function-length", 3),
    "long method": ("src/a.cc", HEAD + "class A : B {\n int x = 0;\n" + body(101) + "};\n", "function-length", 4),
    "long kernel": ("src/a.cu", HEAD + "namespace n {\ntemplate <int N>\n__global__ void k(T (&x)[N]) "
                    + body(101)[8:] + "}\n", "function-length", 3),
    "long constructor": ("src/a.cc", HEAD + "A::A() : b_(1) {\n" + "  g();\n" * 100 + "}\n", "function-length", 2),
    "long Python function": ("a.py", '"""A."""\ndef f():\n' + "    g()\n" * 100, "function-length", 2),
    "environment": ("src/a.cc", HEAD + 'const char* x = std::get' 'env("A");\n', "environment", 2),
    "environment in an app": ("apps/a.cc", HEAD + "extern char** envi" "ron;\n", "environment", 2),
    "dispatch macro": ("src/a.h", HEAD + "#define DISPATCH(type, ...) \\\n  f<type>(__VA_ARGS__)\n", "macro", 2),
    "code in a comment": ("src/a.cc", HEAD + "// value = compute(rows);\n", "commented-out", 2),
    "a call in a comment": ("src/a.cc", HEAD + "int x;  // pool.release(page);\n", "commented-out", 2),
    "a block in a comment": ("src/a.cc", HEAD + "/* fine\n   if (x) {\n*/\n", "commented-out", 3),
    "a directive in a comment": ("src/a.cc", HEAD + "// #include <vector>\n", "commented-out", 2),
    "a closing brace in a comment": ("src/a.cc", HEAD + "// }\n", "commented-out", 2),
    "a return in a comment": ("src/a.cc", HEAD + "  // return x + 1;\n", "commented-out", 2),
    "Python in a comment": ("a.py", '"""A."""\n# import os\n', "commented-out", 2),
    "a Python call in a comment": ("a.py", '"""A."""\nx = 1\n# print(x)\n', "commented-out", 3),
    "a Python branch in a comment": ("a.py", '"""A."""\nx = 1\n# if x == 2:\n', "commented-out", 3),
    "CMake in a comment": ("CMakeLists.txt", "# add_subdirectory(src)\n", "commented-out", 1),
    "a note": ("src/a.cc", HEAD + "// TO" "DO: later\n", "left-over", 2),
    "a note in prose": ("docs/a.md", "# A\n\nFIX" "ME\n", "left-over", 3),
    "twin function": ("src/model/a.cc", HEAD + "void pre" "fill_rows(int n);\n", "one-forward", 2),
    "twin class": ("src/backend/cpu/a.cc", HEAD + "class AttentionDecode;\n", "one-forward", 2),
    "twin file": ("src/ops/decode_attention.h", HEAD, "one-forward", 1),
    "machine path": ("docs/a.md", "See /wo" "rk/main.\n", "machine", 1),
    "home path": ("tools/a.sh", "# A.\ncd /ro" "ot/x\n", "machine", 2),
    "registry": ("a.json", '{"x": "https://py' 'pi.org/simple"}\n', "machine", 1),
    "dead link": ("docs/a.md", "# A\n[b](b.md), [d](https://example.org/d.md)\n", "link", 2),
    "formatting": ("src/a.cc", HEAD + "int  f( ) ;\n", "format", 2),
}

# path: text that no rule may object to
CLEAN = {
    "src/a.cc": HEAD + """#include "a.h"

#define CHECK(x) f(x)

namespace n {
// Rows are grouped; a group's scale comes first, then (in order) its values; see docs/arithmetic.md.
// y = x * rsqrt(mean(x^2) + eps)
// for rows of one stream (in order)
constexpr long kMany = 1'000'000;  // "a" { in a literal below
const char* kText = "// value = f(x); { get\\
env";
}  // namespace n
""".replace("get\\\nenv", "{{"),
    "src/base/config.cc": HEAD + 'const char* x = get' 'env("A");\n',
    "src/long.cc": "// A table. Long because each entry is one line of the standard.\nint x;\n" + "int g();\n" * 700,
    "src/table.cc": HEAD + "const T kTable[] = {\n" + "    {f(1), 2},\n" * 150 + "};\n",
    "src/class.h": HEAD + "#pragma once\n\nclass A {\n" + " int f() { return 1; }\n" * 150 + "};\n",
    "src/backend/cpu/linear.cc": HEAD + "void decode_q4_1(const Block& block);\nauto x = quant::decode(block);\n",
    "src/server/decode.cc": HEAD + "int x;\n",
    "tools/a.py": '#!/usr/bin/env python3\n"""A."""\n# y = x @ w, in float64\n# the ids (all of them)\nx = 1\n',
    "docs/a.md": "A list of things done, with a link to https://example.org/work/x and ~/work.\n"
    "Links: [code](../src/a.cc), [part](#part), [other](../tools/a.py#top).\n",
    "build/x.cc": "int x;\n",
    "data.bin": "\udcff",
}


def write_tree(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode(errors="surrogateescape"))
    shutil.copy(Path(lean.__file__).parents[2] / ".clang-format", root)


class LeanTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def test_every_planted_violation_is_found(self):
        for name, (path, text, rule, line) in PLANTED.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                if rule == "format" and FORMATTER is None:
                    self.skipTest("clang-format is missing; ./setup installs it")
                write_tree(Path(folder), {path: text})
                _, found, _ = lean.findings(Path(folder))
                self.assertIn((path, line, rule), [entry[:3] for entry in found])

    def test_every_rule_has_a_planted_violation(self):
        self.assertEqual({entry[2] for entry in PLANTED.values()}, set(lean.rules.RULES) | {"format", "link"})

    def test_good_code_is_left_alone(self):
        write_tree(self.root, CLEAN)
        files, found, _ = lean.findings(self.root)
        self.assertEqual([entry for entry in found if entry[2] != "format"], [])
        self.assertEqual(files, len(CLEAN) - 2 + 1)  # not build/, not the binary; the copied .clang-format

    def test_a_tree_of_git_leaves_ignored_files_out(self):
        if shutil.which("git") is None:
            self.skipTest("git is missing; ./setup installs it")
        write_tree(self.root, {".gitignore": "out/\n", "out/a.py": "f()\n", "b.py": "f()\n"})
        subprocess.run(["git", "init", "--quiet", str(self.root)], check=True)
        _, found, _ = lean.findings(self.root)
        self.assertEqual([entry[0] for entry in found], ["b.py"])

    def test_the_program_says_what_it_found(self):
        write_tree(self.root, {"a.py": "f()\n"})
        command = [sys.executable, "-B", lean.__file__, str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("a.py:1: contract: opens without a comment", done.stdout)
        self.assertTrue(done.stdout.endswith("lean: 2 files, 1 findings\n"), done.stdout)
        (self.root / "a.py").write_text('"""A."""\n')
        self.assertEqual(subprocess.run(command, capture_output=True, check=False).returncode, 0)

    def test_without_the_formatter_it_says_so(self):
        write_tree(self.root, {"a.cc": HEAD + "int  x;\n"})
        command = [sys.executable, "-B", lean.__file__, str(self.root)]
        environment = dict(os.environ, PATH="")
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("clang-format is missing", done.stdout)


if __name__ == "__main__":
    unittest.main()
