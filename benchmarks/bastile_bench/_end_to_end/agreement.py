# Part of Bastile, under the MIT License. See LICENSE.
"""Whether a curve of losses is the baseline's, but for rounding.

Two curves of the baseline on other data of the same distribution lie apart by
chance. A provider that computes the same model lies closer to the baseline than
that, on the same data.
"""

import math


def largest_gap(first: list, second: list) -> float:
    """The largest difference at any step; infinite where a loss is no number."""
    if len(first) != len(second):
        raise ValueError(f"curves of {len(first)} and {len(second)} losses")
    gaps = [abs(a - b) for a, b in zip(first, second)]
    return math.inf if any(map(math.isnan, gaps)) else max(gaps)


def judge(losses: list, baseline: list, other: list) -> dict:
    """``loss_gap`` to the baseline, the ``loss_gap_allowed``, which is that between
    the baseline and itself on ``other`` data, and whether the curve ``agrees``."""
    gap, allowed = largest_gap(losses, baseline), largest_gap(baseline, other)
    return {
        "loss_gap": gap,
        "loss_gap_allowed": allowed,
        "agrees": math.isfinite(allowed) and gap <= allowed,
    }
