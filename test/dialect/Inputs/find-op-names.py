#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Finds the places outside dialect/ops/ that name a model op.

The names are those of the files in dialect/ops/, in both spellings: `rms_norm`
and `RmsNorm`. A name that is one word may be a function of mathematics or part of
another word, so it only counts where it can be nothing but the op: `tile.silu`,
`"silu"`, `ops/silu`, and `Silu` as a word of an identifier. Prints what was
searched and then each place found.
"""

import os
import re
import sys

FOLDERS = ["dialect", "passes", "lib", "runtime", "include", "tools"]
SUFFIXES = (".h", ".cpp", ".td", ".txt")


def without_descriptions(path, text):
    """The description of the dialect introduces the ops to the reader."""
    if not path.endswith("TileDialect.td"):
        return text
    return re.sub(
        r"let description = \[\{.*?\}\];",
        lambda match: "\n" * match[0].count("\n"),
        text,
        flags=re.DOTALL,
    )


#: Of words that are no nouns, what asks about a function in `isLinear`.
ADJECTIVES = {"linear"}


def pattern_of(op):
    if "_" in op:
        return "(?i:" + op.replace("_", "_?") + ")"
    ahead = r"(?<!\bis)" if op in ADJECTIVES else ""
    return rf"tile\.{op}\b|[\"/]{op}\b|{ahead}{op.capitalize()}(?![a-z])"


def main():
    root = sys.argv[1]
    ops_folder = os.path.join(root, "dialect", "ops")
    ops = sorted(name[:-3] for name in os.listdir(ops_folder) if name.endswith(".td"))
    pattern = re.compile("|".join(pattern_of(op) for op in ops))
    searched, found = 0, []
    for folder in FOLDERS:
        for parent, folders, names in os.walk(os.path.join(root, folder)):
            if parent == ops_folder:
                continue
            for name in sorted(names):
                if not name.endswith(SUFFIXES):
                    continue
                path = os.path.join(parent, name)
                with open(path, encoding="utf-8") as file:
                    text = without_descriptions(path, file.read())
                searched += 1
                for number, line in enumerate(text.split("\n"), start=1):
                    if pattern.search(line):
                        place = os.path.relpath(path, root)
                        found.append(f"{place}:{number}: {line.strip()}")
    print(f"searched {searched} files for {', '.join(ops)}")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
