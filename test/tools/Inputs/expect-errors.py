#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Compiles each case of a file with tilec and checks how it is rejected.

Cases are separated by `// -----` lines. Each case starts with its title, its options
if it has any, and the place and text of the error:

    // a misspelled op
    // options: --target=host
    // error: 2:8: custom op 'tile.geglue' is unknown

Lines are counted from the one after `// error:`. The place is `file` for an error that
concerns the file but no line, and `tilec` for one that concerns no file.

Rejected means: exit status 1, one error, the one that is expected, and no output
file, for every target among those that the options name (sm_90 and the host if
they name none).
"""

import os
import re
import subprocess
import sys
import tempfile

CASE = re.compile(
    r"\s*// (?P<title>.*)\n"
    r"(// options: (?P<options>.*)\n)?"
    r"// error: (?P<error>.*)\n"
    r"(?P<source>(.|\n)*)"
)


def check(case, options, folder):
    """The fault of tilec in rejecting the case; empty if there is none."""
    source = os.path.join(folder, "case.mlir")
    output = os.path.join(folder, "case.out")
    with open(source, "w", encoding="utf-8") as file:
        file.write(case["source"])
    result = subprocess.run(
        ["tilec", source, "-o", output, *options], capture_output=True, text=True
    )
    said = (result.stdout + result.stderr).replace(source, "case.mlir")
    problems = []
    if result.returncode != 1:
        problems.append(f"exit status {result.returncode}")
    errors = [line for line in said.splitlines() if "error:" in line]
    if len(errors) != 1:
        problems.append(f"{len(errors)} errors")
    place, text = case["error"].split(": ", 1)
    place = {"tilec": "tilec", "file": "case.mlir"}.get(place, f"case.mlir:{place}")
    if not errors or not errors[0].startswith(f"{place}: error: {text}"):
        problems.append(f"expected '{place}: error: {text}'")
    left = sorted(set(os.listdir(folder)) - {"case.mlir"})
    if left:
        problems.append(f"left behind: {', '.join(left)}")
        for name in left:
            os.remove(os.path.join(folder, name))
    return problems and [*problems, said]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = re.split(r"^// -----\n", file.read(), flags=re.MULTILINE)[1:]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for text in cases:
            case = CASE.fullmatch(text)
            if not case:
                print(f"not a case:\n{text}")
                failures += 1
                continue
            options = (case["options"] or "").split()
            targets = (
                [[]]
                if "--target" in str(options)
                else [
                    ["--target=sm_90"],
                    ["--target=host"],
                ]
            )
            for target in targets:
                problems = check(case, options + target, folder)
                if problems:
                    failures += 1
                    print(f"{case['title']} {target}:", *problems, sep="\n  ")
    print(f"{len(cases)} cases, {failures} failed")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
