#!/usr/bin/env python3
"""Registers, stack, spills and static shared memory of every CUDA kernel on every architecture, from the compiler's report.

kernel_limits.py --check   compiles src/backend/cuda/*.cu and compares with contract/limits/*.tsv; exit 1 on a difference
kernel_limits.py --write   writes these files anew (--only GLOB: the rows of these source files)
A stack frame or a spill is refused either way. Numbers are compared only under the compiler version that the file names.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = ROOT / "contract" / "limits"
ARCHITECTURES = ["80", "86", "89", "90a", "120", "121"]
# As cmake/Cuda.cmake has them.
FLAGS = ["-O3", "-std=c++20", "-DNDEBUG", "-fmad=false", "--expt-relaxed-constexpr", "-DFMT_CONSTEVAL=",
         "-DFMT_USE_CONSTEXPR=1", "-diag-suppress=2810", "-Xptxas", "-v", "-cubin"]
COLUMNS = ["registers", "stack", "spill stores", "spill loads", "shared"]

ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(.*)")
SHARED = re.compile(r"(\d+) bytes smem")


def find_nvcc():
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not found:
        sys.exit("kernel_limits: nvcc is not installed; install the CUDA toolkit")
    return found


def version(nvcc):
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"release [\d.]+, V([\d.]+)", text).group(1)


def parse(report):
    """The compiler's report to {mangled name: [registers, stack, spill stores, spill loads, shared]}."""
    kernels, name, frame = {}, None, None
    for line in report.splitlines():
        if match := ENTRY.search(line):
            name, frame = match.group(1), None
        elif name and (match := STACK.search(line)):
            frame = [int(value) for value in match.groups()]
        elif name and (match := USED.search(line)):
            shared = SHARED.search(match.group(2))
            kernels[name] = [int(match.group(1)), *(frame or [0, 0, 0]), int(shared.group(1)) if shared else 0]
            name = None
    return kernels


def compile_one(nvcc, source, architecture):
    command = [nvcc, *FLAGS, f"-gencode=arch=compute_{architecture},code=sm_{architecture}", f"-I{ROOT / 'src'}",
               "-o", "/dev/null", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"kernel_limits: {source.name} does not compile for sm_{architecture}:\n{done.stderr}")
    return parse(done.stderr)


def demangle(names):
    if not names:
        return {}
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    plain = [re.sub(r"\(anonymous namespace\)::", "", line) for line in text.splitlines()]
    return dict(zip(names, plain))


def table(source, kernels):
    """Rows of the file: the source, the kernel's name without its parameter list, then the numbers."""
    names = demangle(list(kernels))
    rows = []
    for mangled, numbers in kernels.items():
        name = names[mangled]
        depth, end = 0, len(name)
        for i, char in enumerate(name):  # the parameter list is the first parenthesis outside template arguments
            depth += {"<": 1, ">": -1}.get(char, 0)
            if char == "(" and depth == 0:
                end = i
                break
        rows.append((source, name[:end].removeprefix("void "), numbers))
    return sorted(rows)


def text_of(rows, compiler):
    lines = [f"# nvcc {compiler}", "\t".join(["source", "kernel", *COLUMNS])]
    lines += ["\t".join([source, name, *map(str, numbers)]) for source, name, numbers in rows]
    return "\n".join(lines) + "\n"


def read(text):
    """text_of, backwards."""
    rows = [line.split("\t") for line in text.splitlines()[2:]]
    return [(source, name, [int(value) for value in numbers]) for source, name, *numbers in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--write", action="store_true")
    parser.add_argument("--sm", default=",".join(ARCHITECTURES), help="architectures, comma-separated")
    parser.add_argument("--only", default="*", metavar="GLOB", help="source files, as linear_*.cu")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    nvcc = find_nvcc()
    compiler = version(nvcc)
    sources = sorted((ROOT / "src" / "backend" / "cuda").glob(arguments.only))
    sources = [source for source in sources if source.suffix == ".cu"]
    wrong = []
    for architecture in arguments.sm.split(","):
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            parts = pool.map(lambda source: table(source.name, compile_one(nvcc, source, architecture)), sources)
            rows = sorted(row for part in parts for row in part)
        for _, name, numbers in rows:
            if any(numbers[1:4]):
                wrong.append(f"sm_{architecture}: {name} has a stack of {numbers[1]} bytes, spills {numbers[2]} and {numbers[3]}")
        print(f"sm_{architecture}: {len(rows)} kernels, at most {max((n[0] for _, _, n in rows), default=0)} registers", flush=True)
        path = LIMITS / f"sm_{architecture}.tsv"
        recorded = path.read_text() if path.exists() else ""
        mine = {source.name for source in sources}
        rows += [row for row in read(recorded) if row[0] not in mine and arguments.only != "*"]
        text = text_of(sorted(rows), compiler)
        if arguments.write:
            LIMITS.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            continue
        if recorded.splitlines()[:1] != text.splitlines()[:1]:
            print(f"  {path.name} is of another compiler: its numbers are not compared")
        elif recorded != text:
            old, new = set(recorded.splitlines()), set(text.splitlines())
            wrong += [f"sm_{architecture}: - {line}" for line in sorted(old - new)]
            wrong += [f"sm_{architecture}: + {line}" for line in sorted(new - old)]
    if wrong:
        sys.exit("\n".join(["kernel_limits: differs from the record:", *wrong]))


if __name__ == "__main__":
    main()
