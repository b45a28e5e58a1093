# Part of Bastile, under the MIT License. See LICENSE.
"""What a run says in the end."""

import collections
from typing import Any

from peers_tests import misses

Results = dict[str, dict[str, Any]]


def summary(suite: str, results: Results) -> dict[str, Any]:
    """Counts of outcomes, the share of tests that passed of those that count and were
    not skipped, and the tests that did not pass and are not known to miss."""
    counts = collections.Counter(x["outcome"] for x in results.values())
    failed = [test for test, x in results.items() if x["outcome"] == "failed"]
    new = [test for test in failed if misses.why(suite, test) is None]
    missed = counts["failed"] + counts["not run"] + counts["running"]
    total = counts["passed"] + missed
    return {
        "suite": suite,
        **{name: counts[name] for name in sorted(counts)},
        "share": counts["passed"] / total if total else 0.0,
        "known misses": len(failed) - len(new),
        "new misses": sorted(new),
    }


def write(suite: str, results: Results) -> str:
    """The summary as text, with what failed by function of tests."""
    found = summary(suite, results)
    lines = [
        f"{suite}: {found['share']:.1%} of tests that count and were not skipped passed"
    ]
    for outcome in ("passed", "failed", "skipped", "not run", "running", "not counted"):
        lines.append(f"  {outcome}: {found.get(outcome, 0)}")
    groups = collections.defaultdict(list)
    for test, result in sorted(results.items()):
        if result["outcome"] in ("failed", "running"):
            groups[test.partition("[")[0]].append((test, result))
    for name, tests in groups.items():
        test, result = tests[0]
        reason = misses.why(suite, test)
        known = f"known: {reason}" if reason else "NEW"
        lines.append(f"{len(tests):5} {name} ({known})")
        lines.append(f"        {result.get('message', result['outcome'])[:200]}")
    return "\n".join(lines)
