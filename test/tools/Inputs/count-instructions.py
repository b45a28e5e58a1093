#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Counts what has to be compiled of programs for tensor cores.

count-instructions.py FILE NAME=OPS,INSTRUCTIONS...: for each program NAME of FILE, the
most ops that it may have at the last level of MLIR, and the most instructions in
optimized LLVM IR. Most of the time of a compilation is in proportion to these two.
"""

import re
import subprocess
import sys

#: Where a kernel ends and an op of it begins, and a kernel's name; then the same for
#: instructions.
OPS = r"^  \}", r'^    (?:%[^=]*= )?"?[a-z]+[0-9a-z]*\.', r"llvm\.func @(\w+)\("
INSTRUCTIONS = r"^\}", r"^  (?:%[\w.]+ = )?[a-z]", r"^define .*@(\w+)\("


def count(path, level, patterns):
    """How many lines of each kernel begin an op or an instruction."""
    end, line, name = (re.compile(pattern, re.M) for pattern in patterns)
    command = ["tilec", path, "--target=sm_90a", f"--emit={level}", "-o", "-"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    kernels = {}
    for text in end.split(done.stdout):
        if found := name.search(text):
            kernels[found[1]] = len(line.findall(text[found.start() :]))
    return kernels


def main():
    path, *limits = sys.argv[1:]
    ops = count(path, "nvvm", OPS)
    instructions = count(path, "llvm", INSTRUCTIONS)
    is_over = False
    for limit in limits:
        name, most = limit.split("=")
        counts = ops[name], instructions[name]
        is_over |= any(have > int(may) for have, may in zip(counts, most.split(",")))
        print(f"{name}: {counts[0]} ops, {counts[1]} instructions, at most {most}")
    if is_over:
        sys.exit(
            "a program has become longer, and takes as much longer to compile: find "
            "out what it is made of that it was not before"
        )


if __name__ == "__main__":
    main()
