#!/usr/bin/env python3
"""lean.py [ROOT]: checks the code itself against the rules (rules.py) and clang-format. Standard library only.

Prints one line a finding, "path:line: rule: message"; exit status 1 when there is any. Looks at the files that git
tracks or would track; in a tree without git at every file outside build/ and hidden folders.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import rules

MAX_BYTES = 1 << 20  # larger files are data


def tracked_files(root):
    listing = None
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(command, capture_output=True, check=False)
    if listing is not None and listing.returncode == 0:
        paths = [path for path in listing.stdout.decode().split("\0") if path]
    else:
        paths = []
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if f not in ("build", "__pycache__") and (f == ".ci" or f[0] != ".")]
            paths += [str((Path(folder) / name).relative_to(root)) for name in names]
    return sorted(path for path in paths if (root / path).is_file() and not (root / path).is_symlink())


def read_sources(root):
    """The text files as Sources; what is not UTF-8, or larger than MAX_BYTES, is data and not looked at."""
    for path in tracked_files(root):
        data = (root / path).read_bytes()
        if len(data) > MAX_BYTES:
            continue
        try:
            yield rules.Source(path, data.decode())
        except UnicodeDecodeError:
            continue


def unformatted(root, paths):
    """(path, line, rule, message) for the first place in each file that clang-format would change; None without it."""
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    if program is None:
        return None
    found = {}
    for start in range(0, len(paths), 50):
        command = [program, "--dry-run", *paths[start : start + 50]]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        for match in re.finditer(r"(?m)^(\S+?):(\d+):\d+: (?:warning|error): (.*)$", done.stderr):
            found.setdefault(match.group(1), (match.group(1), int(match.group(2)), "format", "run clang-format -i"))
        if done.returncode != 0 and not found:
            found[""] = (".clang-format", 1, "format", done.stderr.strip())
    return list(found.values())


def dead_links(root, sources):
    """Links of Markdown files to files that are not there; links elsewhere are not followed."""
    for source in (source for source in sources if source.kind == "prose"):
        for number, line in enumerate(source.lines, start=1):
            for target in re.findall(r"\]\(([^)#\s]+)", line):
                if ":" not in target and not (root / source.path).parent.joinpath(target).exists():
                    yield source.path, number, "link", f"{target} is not there"


def findings(root):
    sources = list(read_sources(root))
    result = list(dead_links(root, sources))
    for source in sources:
        for name, rule in rules.RULES.items():
            result += [(source.path, line, name, message) for line, message in rule(source)]
    formatting = unformatted(root, [source.path for source in sources if source.kind == "cpp"])
    return len(sources), sorted(result + (formatting or [])), formatting is not None


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    files, result, formatted = findings(root)
    for path, line, name, message in result:
        print(f"{path}:{line}: {name}: {message}")
    if not formatted:
        print("lean: clang-format is missing (./setup installs it); formatting was not checked")
    print(f"lean: {files} files, {len(result)} findings")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
