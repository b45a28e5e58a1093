#!/usr/bin/env python3
"""Prints `N passed, N failed, N skipped` for a results file of lit.

Exits with 1 when a test failed, none passed, or there is no results file.
"""

import json
import sys
from collections import Counter

PASSED = {"PASS", "FLAKYPASS", "XFAIL"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def outcome(code):
    if code in PASSED:
        return "passed"
    # Whatever is neither known to be good nor skipped counts as a failure:
    # unresolved tests, time-outs, unexpected passes.
    return "skipped" if code in SKIPPED else "failed"


def main():
    try:
        with open(sys.argv[1], encoding="utf-8") as results:
            tests = json.load(results)["tests"]
    except (OSError, ValueError) as error:
        print(f"no test results: {error}", file=sys.stderr)
        tests = []
    count = Counter(outcome(test["code"]) for test in tests)
    print(
        f"{count['passed']} passed, {count['failed']} failed,"
        f" {count['skipped']} skipped"
    )
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
