# Part of Bastile, under the MIT License. See LICENSE.
"""Compare two result files: what got faster or slower beyond the spread.

A difference counts if the quartiles of the two measurements do not overlap. The exit
status is 1 if one of the chosen libraries got slower by more than the threshold, or
fails where it did not before.
"""

import dataclasses

from bastile_bench import _options, _report, _statistics
from bastile_bench._providers import PROVIDERS
from bastile_bench._report import Column, format_table

_METRICS = ("device_us", "wall_us", "host_us", "compile_ms")
_KEY = ("op", "shape", "dtype", "direction", "provider")


@dataclasses.dataclass(frozen=True)
class Difference:
    """One time in both files."""

    key: tuple
    metric: str
    before: dict
    after: dict

    @property
    def factor(self) -> float:
        """Above 1, it became slower."""
        return self.after["median"] / self.before["median"]

    @property
    def is_beyond_spread(self) -> bool:
        return (
            self.after["low"] > self.before["high"]
            or self.after["high"] < self.before["low"]
        )


def add_arguments(parser) -> None:
    parser.add_argument("before", metavar="A.json", help="the result to compare with")
    parser.add_argument("after", metavar="B.json", help="the new result")
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="the share by which a time may grow (0.05)",
    )
    parser.add_argument(
        "--metrics",
        nargs="+",
        choices=_METRICS,
        default=list(_METRICS),
        help="which times (all that both files have)",
    )
    parser.add_argument(
        "--providers",
        type=_options.provider_names,
        default=["bastile"],
        metavar="LIST",
        help=f"whose times, of {','.join(PROVIDERS)} (bastile)",
    )


def run(arguments) -> int:
    """Prints the differences; 1 if there is a regression."""
    if arguments.threshold < 0:
        raise ValueError(f"--threshold must not be negative: {arguments.threshold}")
    before, after = (_report.read(path) for path in (arguments.before, arguments.after))
    _warn_of_machines(before, after)
    differences, broken, gone = find_differences(before, after, arguments)
    if not differences and not broken:
        raise ValueError("the files have no row in common: there is nothing to compare")
    moved = [one for one in differences if one.is_beyond_spread]
    slower = [one for one in moved if one.factor > 1 + arguments.threshold]
    faster = [one for one in moved if one.factor < 1 / (1 + arguments.threshold)]
    for title, found, order in (
        ("slower", slower, lambda one: -one.factor),
        ("faster", faster, lambda one: one.factor),
    ):
        if found:
            print(f"{len(found)} {title} by more than {arguments.threshold:.0%}:")
            rows = [_row(one) for one in sorted(found, key=order)]
            print(format_table(rows, COLUMNS))
            print()
    for key in broken:
        print(f"{_name(key)} fails now")
    if gone:
        first = _name(gone[0])
        print(f"{len(gone)} rows are in {arguments.before} alone, {first} first")
    unchanged = len(differences) - len(slower) - len(faster)
    print(f"{unchanged} of {len(differences)} times are as they were")
    for metric in arguments.metrics:
        mean = _statistics.geometric_mean(
            one.factor for one in differences if one.metric == metric
        )
        if mean:
            print(f"{metric}: {mean:.3f} of what it was (geometric mean)")
    return 1 if slower or broken else 0


def find_differences(before, after, arguments) -> tuple:
    """The times in both files, the keys of rows that fail now but did not, and the
    keys of rows that are gone."""
    old, new = (_rows(document, arguments.providers) for document in (before, after))
    differences, broken, gone = [], [], []
    for key, row in old.items():
        if row["status"] != "ok":
            continue
        if key not in new:
            gone.append(key)
        elif new[key]["status"] != "ok":
            broken.append(key)
        else:
            differences += [
                Difference(key, metric, row[metric], new[key][metric])
                for metric in arguments.metrics
                if _has(row, metric) and _has(new[key], metric)
            ]
    return differences, broken, gone


def _has(row, metric):
    return _report.is_measurement(row.get(metric)) and row[metric]["median"] > 0


def _rows(document, providers):
    return {
        tuple(str(row.get(name)) for name in _KEY): row
        for row in document["rows"]
        if row.get("provider") in providers
    }


def _warn_of_machines(before, after):
    for name in ("gpu", "driver", "torch"):
        old, new = (document["environment"].get(name) for document in (before, after))
        if old != new:
            print(f"note: {name} was {old}, is {new}")


def _name(key):
    op, shape, dtype, direction, provider = key
    sizes = shape.strip("[]").replace(", ", "x")
    return f"{provider} {op} {sizes} {dtype} {direction}".replace(" None", "")


def _row(difference):
    return {
        "what": _name(difference.key),
        "metric": difference.metric,
        "before": difference.before,
        "after": difference.after,
        "factor": difference.factor,
    }


COLUMNS = [
    Column("what", "what", right=False),
    Column("time", "metric", right=False),
    Column("before", "before"),
    Column("after", "after"),
    Column("factor", lambda row: f"{row['factor']:.3f}"),
]
