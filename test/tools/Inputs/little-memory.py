#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Compiles with too little memory: little-memory.py INPUT OUTPUT.

Starts with the memory that tilec needs to start at all and adds a megabyte at a time,
until tilec compiles. Each run before that must end by itself within 20 s, say that
memory is out, and leave no output.
"""

import os
import resource
import signal
import subprocess
import sys

MEGABYTE = 1 << 20
#: Too few megabytes for any program that loads LLVM, and plenty.
LEAST, MOST = 64, 4096


def run(megabytes, *arguments):
    def limit():
        size = megabytes * MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run(
        ["tilec", *arguments],
        preexec_fn=limit,
        capture_output=True,
        timeout=20,
    )


def find_start():
    """The megabytes that loading takes."""
    low, high = LEAST, MOST
    while high - low > 1:
        middle = (low + high) // 2
        if run(middle, "--version").returncode == 0:
            high = middle
        else:
            low = middle
    return high


def main():
    source, output = sys.argv[1:]
    start = find_start()
    for megabytes in range(start, start + 256):
        done = run(megabytes, source, "-o", output)
        if done.returncode == 0:
            print(f"compiled after {megabytes - start} failures")
            return
        said = done.stderr.decode(errors="replace")
        if done.returncode not in (-signal.SIGABRT, 1) or not (
            "out of memory" in said or "Cannot allocate memory" in said
        ):
            print(f"with {megabytes} MB, it ends with {done.returncode}: {said}")
        if os.path.exists(output):
            print(f"with {megabytes} MB, it leaves an output behind")
            os.remove(output)
    print("no memory is enough")


if __name__ == "__main__":
    main()
