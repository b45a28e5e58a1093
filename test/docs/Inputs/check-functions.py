# Part of Bastile, under the MIT License. See LICENSE.
"""Compares the functions in a document's table with those that a header declares."""

import pathlib
import re
import sys


def main():
    document, header = (pathlib.Path(path).read_text() for path in sys.argv[1:])
    table = re.search(r"^These are the functions.*?\n\n((?:\|.*\n)+)", document, re.M)[
        1
    ]
    shown = set(re.findall(r"`(\w+)`", table))
    namespace = header.split("class Expr {")[1].split("\n};", 1)[1]
    declared = set(
        re.findall(
            r"^(?:Expr|mlir::Value|llvm::SmallVector<mlir::Value>) (\w+)\(",
            namespace,
            re.M,
        )
    )
    declared = {name for name in declared if name != "operator"}
    for name in sorted(shown ^ declared):
        print(f"{name} is {'not declared' if name in shown else 'not shown'}")
    if shown != declared:
        sys.exit(1)


if __name__ == "__main__":
    main()
