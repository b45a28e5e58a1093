#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Writes the code of every kernel of the tests, examples and benchmarks to a folder.

To see that a change alters no kernel, compare the folders of two compilers:

    scripts/write-ptx.py /tmp/before              with build/bin/tilec
    scripts/write-ptx.py /tmp/after --tilec other/bin/tilec
    diff -r /tmp/before /tmp/after

Each file holds one function, alone or with gradients: its PTX, the assembly of the host
if the function is for the host alone, or the reason why it is refused. Registers and
labels are numbered by their first use, so that their names do not differ.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "numerics" / "Inputs"))

import functions  # noqa: E402
from cases import CASES  # noqa: E402

MODES = {"call": [], "grad": ["--grad"], "together": ["--value-and-grad"]}
#: Lengths of the benchmarks' rows, and lengths that no vector divides.
LENGTHS = (128, 2048, 2880, 4096, 4097, 8192, 11008, 16384, 65536)
#: Sizes of the benchmarks' vocabularies.
CLASSES = (32000, 50257, 128256, 151936, 201088, 262144)
LOSS = """\
func.func @f(%x: tensor<?x{0}xbf16>, %t: tensor<?x1xi64>) -> tensor<1xf32> {{
  %0:5 = tile.cross_entropy %x, %t : tensor<?x{0}xbf16>, tensor<?x1xi64>
  return %0#0 : tensor<1xf32>
}}
"""
NAMES = re.compile(r"%[a-z]+\d+|\$L_\w+")
#: Where a kernel begins, whose registers and labels are its own.
ENTRY = re.compile(r"^(?=\.visible \.entry )", re.M)


def find():
    """Names and texts of all functions, with whether they are the host's."""
    for function in functions.find():
        yield function.name, function.text, "f64" in function.text
    for name, case in CASES.items():
        for length in LENGTHS:
            yield f"{name}:{length}", case.source(length, "bf16"), False
    for length in CLASSES:
        yield f"cross_entropy:{length}", LOSS.format(length), False


def rename(text):
    """Numbers the registers and labels of each kernel by their first use."""

    def rename_one(kernel):
        numbers = {}
        return NAMES.sub(
            lambda match: f"{match[0][:2]}{numbers.setdefault(match[0], len(numbers))}",
            kernel,
        )

    return "".join(map(rename_one, ENTRY.split(text)))


def compile_one(tilec, name, text, is_for_host, mode):
    target = "host" if is_for_host else "sm_90"
    done = subprocess.run(
        [tilec, "-", "-o", "-", f"--target={target}", *MODES[mode]],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode < 0:
        raise SystemExit(f"write-ptx: {name}, {mode}: {done.stderr}")
    code = re.sub(r"^//.*\n", "", done.stdout, flags=re.M)
    return done.stderr + (code if is_for_host else rename(code))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    build = pathlib.Path(os.environ.get("BASTILE_BUILD", ROOT / "build"))
    parser.add_argument("--tilec", default=build / "bin" / "tilec")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    def write(job):
        name, text, is_for_host, mode = job
        code = compile_one(options.tilec, name, text, is_for_host, mode)
        file = re.sub(r"\W+", "-", f"{name} {mode}") + ".txt"
        (options.folder / file).write_text(code, encoding="utf-8")
        return bool(code)

    jobs = [(*found, mode) for found in find() for mode in MODES]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        count = sum(pool.map(write, jobs))
    print(f"{count} files in {options.folder}")


if __name__ == "__main__":
    main()
