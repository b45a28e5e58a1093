#!/usr/bin/env python3
"""Prints `N passed, N failed, N skipped` for the xunit results of a lit run.

The xunit file and not lit's JSON, since the latter leaves skipped tests out.
Exits with 1 when a test failed, when none passed, or without a results file.
"""

import sys
import xml.etree.ElementTree as ElementTree


def main():
    total = failed = skipped = 0
    try:
        for suite in ElementTree.parse(sys.argv[1]).getroot().iter("testsuite"):
            total += int(suite.get("tests"))
            failed += int(suite.get("failures"))
            skipped += int(suite.get("skipped"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}", file=sys.stderr)
    passed = total - failed - skipped
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
