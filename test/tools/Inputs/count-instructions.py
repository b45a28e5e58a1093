#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Counts what has to be compiled of programs for tensor cores.

count-instructions.py FOLDER NAME=OPS,INSTRUCTIONS...: for each FOLDER/NAME.mlir, the
most ops that the last level of MLIR may have, and the most instructions of optimized
LLVM IR. Most of the time of a compilation is in proportion to these two.
"""

import re
import subprocess
import sys

#: Where an op of a kernel, and an instruction of one, begins.
OP = re.compile(r'^    (?:%[^=]*= )?"?[a-z]+[0-9a-z]*\.', re.M)
INSTRUCTION = re.compile(r"^  (?:%[\w.]+ = )?[a-z]", re.M)


def count(pattern, path, level):
    command = ["tilec", path, "--target=sm_90a", f"--emit={level}", "-o", "-"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return len(pattern.findall(done.stdout))


def main():
    folder, *limits = sys.argv[1:]
    is_over = False
    for limit in limits:
        name, most = limit.split("=")
        path = f"{folder}/{name}.mlir"
        counts = count(OP, path, "nvvm"), count(INSTRUCTION, path, "llvm")
        is_over |= any(have > int(may) for have, may in zip(counts, most.split(",")))
        print(f"{name}: {counts[0]} ops, {counts[1]} instructions, at most {most}")
    if is_over:
        sys.exit(
            "a program has become longer, and takes as much longer to compile: find "
            "out what it is made of that it was not before"
        )


if __name__ == "__main__":
    main()
