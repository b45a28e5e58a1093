#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Runs the tools on inputs of fuzzers that once broke them.

    run-corpus.py FOLDER

Each input names its options in its first line. The tool must accept the input or say
what is wrong with it, within 10 s and 2 GB; any signal is a failure.
"""

import pathlib
import resource
import subprocess
import sys

SECONDS = 10
BYTES = 2 << 30
PREFIX = "// options: "


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def find_problem(tool, path):
    """The failure of the tool on an input; nothing if there is none."""
    line = path.read_bytes().split(b"\n", 1)[0].decode(errors="replace")
    if not line.startswith(PREFIX):
        return "its first line names no options"
    options = line.removeprefix(PREFIX)
    # A pipeline is one option, spaces included.
    words = [options] if "--pass-pipeline=" in options else options.split()
    words = [word for word in words if not word.startswith("--emit=")]
    try:
        done = subprocess.run(
            [tool, path, "-o", "/dev/null", *words],
            capture_output=True,
            timeout=SECONDS,
            preexec_fn=limit,
        )
    except subprocess.TimeoutExpired:
        return f"takes more than {SECONDS} s"
    if done.returncode not in (0, 1):
        return f"ends with {done.returncode}"
    if done.returncode == 1 and b"error:" not in done.stderr:
        return "is refused without a reason"
    return None


def main():
    folder = pathlib.Path(sys.argv[1])
    failures = count = 0
    for name, tool in (("Pipeline", "tilec"), ("Pass", "tile-opt")):
        for path in sorted((folder / name).glob("*.mlir")):
            count += 1
            problem = find_problem(tool, path)
            if problem:
                failures += 1
                print(f"{name}/{path.name} {problem}")
    print(f"{count} inputs, {failures} failed")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
