#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Prints `N passed, N failed, N skipped` for the xunit results of a lit run, if
one is given, and what `--add` counts beside them.

It reads the xunit file because lit's JSON leaves skipped tests out.
Exits with 1 when a test failed, when none passed, or without a results file.
"""

import argparse
import sys
import xml.etree.ElementTree as ElementTree


def count(path):
    """How many tests passed, failed and were skipped."""
    total = failed = skipped = 0
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        total += int(suite.get("tests"))
        failed += int(suite.get("failures"))
        skipped += int(suite.get("skipped"))
    return total - failed - skipped, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="?")
    parser.add_argument(
        "--add", nargs=3, type=int, default=(0, 0, 0),
        metavar=("PASSED", "FAILED", "SKIPPED"),
    )  # fmt: skip
    options = parser.parse_args()
    counts = (0, 0, 0)
    has_results = True
    if options.results:
        try:
            counts = count(options.results)
        except (OSError, ElementTree.ParseError) as error:
            print(f"no test results: {error}", file=sys.stderr)
            has_results = False
    passed, failed, skipped = (a + b for a, b in zip(counts, options.add))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed or not has_results else 0


if __name__ == "__main__":
    sys.exit(main())
