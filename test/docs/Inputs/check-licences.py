#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Prints the source files below a folder that lack the licence line in their first
lines, and how many files were looked at: check-licences.py FOLDER."""

import os
import sys

LINE = "Part of Bastile, under the MIT License. See LICENSE."
#: The line stands among the first of a file, behind a title or what runs it.
FIRST = 4
SUFFIXES = (".cpp", ".h", ".td", ".py", ".pyi", ".sh", ".cmake")
NAMES = ("CMakeLists.txt", "Makefile")


def is_source(path):
    name = os.path.basename(path)
    if name in NAMES or name.endswith(SUFFIXES):
        return True
    if "." in name:
        return False
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def find_sources(root):
    for parent, folders, names in os.walk(root):
        # What is built or not ours.
        folders[:] = [
            folder
            for folder in folders
            if not folder.startswith(("build", ".git", "__pycache__", "gpu-package"))
        ]
        for name in sorted(names):
            path = os.path.join(parent, name)
            if os.path.isfile(path) and is_source(path):
                yield path


def main():
    root = sys.argv[1]
    count, lacking = 0, []
    for path in find_sources(root):
        count += 1
        with open(path, encoding="utf-8") as file:
            first = [next(file, "") for _ in range(FIRST)]
        if not any(LINE in line for line in first):
            lacking.append(os.path.relpath(path, root))
    print(f"{count} source files")
    print("\n".join(f"{path} lacks the licence line" for path in lacking))
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
