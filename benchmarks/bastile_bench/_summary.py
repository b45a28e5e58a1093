# Part of Bastile, under the MIT License. See LICENSE.
"""Geometric means over what was measured: how much faster than each other library."""

from bastile_bench import _providers
from bastile_bench._report import Column
from bastile_bench._statistics import geometric_mean

#: What users run: a step has both directions; ops without a backward have one.
_GROUPS = (
    ("all", lambda row: True),
    ("forward", lambda row: row["direction"] == "forward"),
    ("backward", lambda row: row["direction"] == "backward"),
    (
        "norms' backward",
        lambda row: row["op"].endswith("_norm") and row["direction"] == "backward",
    ),
    ("cross-entropy", lambda row: row["op"] == "cross_entropy"),
    ("its loss alone", lambda row: row["op"] == "cross_entropy_loss"),
)
_METRICS = ("device_us", "wall_us", "host_us")


def summarize_speedups(rows) -> list:
    """For each group, other provider and time: how many times the other's time is
    Bastile's (geometric mean), and over how many rows. Above 1, Bastile is faster.

    "all" counts forward, backward and, of ops that have them together, both.
    """
    rows = [row for row in rows if row["status"] == "ok" and _counts(row)]
    ours = {_key(row): row for row in rows if row["provider"] == "bastile"}
    found = []
    for group, belongs in _GROUPS:
        for provider in _providers.PROVIDERS:
            pairs = [
                (ours[_key(row)], row)
                for row in rows
                if row["provider"] == provider != "bastile"
                and _key(row) in ours
                and belongs(row)
            ]
            if pairs:
                found.append(_summary(group, provider, pairs))
    return found


def _counts(row):
    return row["direction"] != "both" or row["op"] == "cross_entropy"


def _key(row):
    return row["op"], tuple(row["shape"]), row["dtype"], row["direction"]


def _summary(group, provider, pairs):
    row = {"group": group, "provider": provider, "count": len(pairs)}
    for metric in _METRICS:
        row[metric.removesuffix("_us") + "_speedup"] = geometric_mean(
            theirs[metric]["median"] / mine[metric]["median"]
            for mine, theirs in pairs
            if theirs.get(metric)
            and mine.get(metric)
            and min(theirs[metric]["median"], mine[metric]["median"]) > 0
        )
    return row


def _factor(key):
    return lambda row: "" if row[key] is None else f"{row[key]:.2f}x"


SUMMARY_COLUMNS = [
    Column("group", "group", right=False),
    Column("beside", lambda row: _providers.PROVIDERS[row["provider"]].title, False),
    Column("rows", "count"),
    Column("device", _factor("device_speedup")),
    Column("wall", _factor("wall_speedup")),
    Column("host", _factor("host_speedup")),
]
