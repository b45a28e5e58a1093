# Part of Bastile, under the MIT License. See LICENSE.
"""The functions of all files of text in the tests and examples."""

import os
import re

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3))
FOLDERS = ("examples", "test")
# Inputs of fuzzers are not valid, or have a test of their own.
OTHERS = os.path.join("test", "fuzz")
# Marks of lower levels: kernels, programs on tiles, threads.
LATER = re.compile(
    r"tile\.(?:kernel|launch|program|load|store)|memref|gpu\.|llvm\.|nvvm\."
    r"|#tile\.(?:blocked|rows|matmul|launch)|vector<"
)


# Files of invalid inputs.
BAD = ("bad-input.mlir", "odd-input.mlir")


class Function:
    """One function of a file."""

    def __init__(self, path, text, name):
        self.text = text
        self.name = f"{os.path.relpath(path, ROOT)}:{name}"
        lengths = [int(n) for n in re.findall(r"x(\d+)x[bf]+\d+>", text)]
        # A GPU computes no float64.
        self.has_float64 = "f64" in text
        # An emulator takes minutes for long rows.
        self.has_long_rows = max(lengths, default=0) > 20000


def _functions(path, section):
    code = re.sub(r"//.*", "", section)
    if LATER.search(code) or "expected-error" in section:
        return
    aliases = "".join(re.findall(r"^[!#]\w+ = .*\n", code, re.M))
    # A function ends with a brace at the beginning of a line.
    for match in re.finditer(
        r"^func\.func (?:private )?@(\w+)(?:[^\n]*\}$|.*?^\})", code, re.M | re.S
    ):
        # Random numbers break what `tile.either` says of two conditions.
        if "tile.either" in match[0]:
            continue
        # Some functions are there for their text alone and return nothing.
        if not re.search(r"^ *return$", match[0], re.M):
            yield Function(path, aliases + match[0] + "\n", match[1])


def find():
    """All functions on tensors alone."""
    for folder in FOLDERS:
        for place, _, files in sorted(os.walk(os.path.join(ROOT, folder))):
            if os.path.relpath(place, ROOT).startswith(OTHERS):
                continue
            for file in sorted(files):
                if not file.endswith(".mlir") or file in BAD:
                    continue
                path = os.path.join(place, file)
                with open(path, encoding="utf-8") as opened:
                    parts = re.split(r"^// -----.*\n", opened.read(), flags=re.M)
                for part in parts:
                    yield from _functions(path, part)
