# Part of Bastile, under the MIT License. See LICENSE.
"""Time fused functions at random, beside torch.compile and a limit.

A seed makes formulas of one to five row operands, with weights, one or two reductions, up
to six special functions and one to three results. Every library gets the same formula: it
computes in float32 and rounds its results once. Of each, forward and backward:

  device     time on the device alone, as of the command kernels
  copy       device time of a copy of as many bytes as there are to move, at least
  special,
  other      instructions an element: of the unit for special functions, and others
  arithmetic the time that so many instructions take, at the GPU's highest clock
  limit      the larger of the copy's time and the arithmetic's
  of it      the limit divided by the device's time: 1 is as fast as the GPU allows
  error      the largest difference from float64, divided by the largest number, and the
             norm of the difference by that of the reference; beside them, how many times
             those of PyTorch's kernels, run one by one, they are

  python -m bastile_bench formulas --random 100 --seed 1
  python -m bastile_bench formulas --seed 1 --only 17 --list
"""

import argparse
import sys
import time

from bastile_bench import _environment, _options, _resources
from bastile_bench._progress import Progress
from bastile_bench._providers import PROVIDERS
from bastile_bench._random_formulas import costs, generate
from bastile_bench._report import (
    Column,
    Report,
    describe_environment,
    format_table,
    number_text,
    shape_text,
)
from bastile_bench._statistics import geometric_mean, spread_text

_PROVIDERS = ("bastile", "torch", "compile")
_DIRECTIONS = ("forward", "backward")
#: Errors this many times PyTorch's are no rounding, unless they are this small: those of
#: long sums in float32 differ by such factors.
_MOST_ERROR = 8
_SMALL_ERROR = 1e-5
#: The formulas farthest from the limit that are shown at the end.
_WORST = 10


def add_arguments(parser) -> None:
    parser.add_argument(
        "--random", type=_positive, default=100, metavar="N", help="formulas (100)"
    )
    parser.add_argument("--seed", type=int, default=0, help="what they follow from (0)")
    parser.add_argument(
        "--only",
        type=int,
        nargs="+",
        metavar="K",
        help="the formulas of these numbers, from 0, in place of the first N",
    )
    parser.add_argument(
        "--megabytes",
        type=float,
        default=64,
        metavar="MB",
        help="that a forward moves at least, which gives the number of rows (64)",
    )
    parser.add_argument(
        "--providers",
        type=_names,
        default=list(_PROVIDERS),
        metavar="LIST",
        help=f"of {','.join(_PROVIDERS)} (all)",
    )
    parser.add_argument(
        "--forward-only", action="store_true", help="leave out the backward"
    )
    parser.add_argument(
        "--list", action="store_true", help="print the formulas and measure nothing"
    )
    parser.add_argument(
        "--budget-seconds",
        type=float,
        metavar="S",
        help="start no further formula after so long",
    )
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu (cuda)")
    parser.add_argument(
        "--out",
        default="bench-results",
        metavar="DIR",
        help="folder for the results (bench-results)",
    )


def _positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not at least 1")
    return int(text)


def _names(text):
    names = _options.provider_names(text)
    for name in names:
        if name not in _PROVIDERS:
            raise argparse.ArgumentTypeError(
                f"{PROVIDERS[name].title} has no such functions"
            )
    return names


def run(arguments) -> int:
    """Measures, prints and writes; 1 if Bastile failed, or its numbers are wrong."""
    numbers = arguments.only or range(arguments.random)
    if min(numbers) < 0 or arguments.megabytes <= 0:
        raise ValueError("--only and --megabytes take no negative numbers")
    formulas = [
        generate.make(arguments.seed, number, 1e6 * arguments.megabytes)
        for number in numbers
    ]
    if arguments.list:
        print("\n".join(describe_formula(formula) for formula in formulas))
        return 0
    device, providers = _options.open_providers(arguments)
    environment = _environment.describe(arguments.device)
    rates = costs.rates_of(environment)
    report = Report("formulas", environment, arguments.out)
    report.document["left_out"] = _options.left_out(arguments, providers)
    print(describe_environment(environment))
    print(f"{len(formulas)} formulas; device time is {device.device_time}")
    if rates is None:
        print("the limit is the copy's time alone: the arithmetic's is not known here")
    directions = _DIRECTIONS[:1] if arguments.forward_only else _DIRECTIONS
    budget = arguments.budget_seconds
    deadline = float("inf") if budget is None else time.monotonic() + budget
    with Progress("measuring", len(formulas)) as progress:
        for formula in formulas:
            if time.monotonic() > deadline:
                progress.print(
                    f"{budget:g} s are over: the rest, from {formula.name} on, was not "
                    "measured"
                )
                break
            progress.step(formula.name, 0)
            rows = _measure(formula, directions, providers, device, rates)
            report.add(*rows)
            progress.print(f"\n{describe_formula(formula)}{_table(rows)}")
            progress.step()
    report.document["environment"].update(
        {f"end_{key}": value for key, value in _environment.state(device.name).items()}
    )
    report.document["summary"] = summarize(report.rows)
    report.write()
    wrong = find_wrong(report.rows)
    _print_end(report, wrong)
    ours = [row for row in report.rows if row["provider"] == "bastile"]
    failed = any(row["status"] == "failed" for row in ours)
    return 1 if failed or wrong else 0


def describe_formula(formula) -> str:
    """Its name, types and shapes, and its definition in Python."""
    others = [
        f"{name}: {_OPERANDS[kind]}"
        for name, kind in formula.inputs.items()
        if kind in _OPERANDS
    ]
    words = [f"{formula.name}: {formula.dtype} {shape_text(formula.shape)}", *others]
    return f"{', '.join(words)}\n{formula.text}"


#: Operands that are no row tensors, by the kinds of ``_inputs``.
_OPERANDS = {
    "weight": "a weight near 1",
    "offset": "a number for each column, near 0",
    "numbers": "a number for each row",
}


def _measure(formula, directions, providers, device, rates):
    import torch

    from bastile_bench import _measure
    from bastile_bench._random_formulas.measured import FormulaOp

    op = FormulaOp(formula)
    case = _measure.Case(op, formula.shape, getattr(torch, formula.dtype), directions)
    loaded = [one.with_formula(formula) for one in providers]
    try:
        rows = _measure.measure_case(case, loaded, device)
    except torch.OutOfMemoryError as error:
        rows = _measure.failed_rows(case, loaded, error)
    if device.name != "cpu":
        _add_kernels(rows, loaded, formula.name, device.ordinal)
    add_limits(rows, op.work, formula, rates)
    add_error_ratios(rows)
    return rows


def _add_kernels(rows, loaded, name, ordinal):
    """Adds what Bastile's kernels take of the GPU."""
    ours = [row for row in rows if row["provider"] == "bastile"]
    for one in loaded:
        if one.name != "bastile" or any(row["status"] == "failed" for row in ours):
            continue
        kernels = one.function(name).kernels
        kernel = max(kernels, key=lambda kernel: kernel.has_gradients)
        found = _resources.of_directions(kernel, ordinal)
        for row in ours:
            row["kernels"] = found[row["direction"]]


def add_limits(rows, work, formula, rates) -> None:
    """Adds to rows that were measured what each direction takes at least, and its share
    of their times."""
    for row in rows:
        least = work[row["direction"]]
        row.update(
            formula=formula.text,
            special=least.special,
            other=least.other,
        )
        if row["status"] != "ok":
            continue
        times = [row["copy_us"]["median"]]
        if rates is not None:
            row["arithmetic_us"] = 1e6 * rates.seconds(least, formula.element_count)
            times.append(row["arithmetic_us"])
        row["limit_us"] = max(times)
        row["limit_share"] = row["limit_us"] / row["device_us"]["median"]


def add_error_ratios(rows) -> None:
    """Adds how many times PyTorch's errors the others' are."""
    plain = {
        row["direction"]: row
        for row in rows
        if row["provider"] == "torch" and row["status"] == "ok"
    }
    for row in rows:
        beside = plain.get(row["direction"])
        if row["status"] != "ok" or beside is None or beside is row:
            continue
        for key in ("max_error", "norm_error"):
            if beside[key] > 0:
                row[f"{key}_ratio"] = row[key] / beside[key]


def find_wrong(rows) -> list:
    """The rows of Bastile's whose errors are no rounding."""
    return [
        row
        for row in rows
        if row["provider"] == "bastile"
        and any(
            row.get(f"{key}_ratio", 0) > _MOST_ERROR and row[key] > _SMALL_ERROR
            for key in ("max_error", "norm_error")
        )
    ]


def summarize(rows) -> list:
    """For each direction and library, the geometric mean of its shares of the limit;
    of the others, also of how many times Bastile's time they take, and how often
    Bastile takes longer."""
    rows = [row for row in rows if row["status"] == "ok"]
    ours = _by_case(rows, "bastile")
    found = []
    for direction in ("all", *_DIRECTIONS):
        for provider in _PROVIDERS:
            chosen = [
                row
                for row in rows
                if row["provider"] == provider
                and direction in ("all", row["direction"])
            ]
            if not chosen:
                continue
            factors = [
                row["device_us"]["median"] / ours[_key(row)]["device_us"]["median"]
                for row in chosen
                if provider != "bastile" and _key(row) in ours
            ]
            found.append(
                {
                    "direction": direction,
                    "provider": provider,
                    "count": len(chosen),
                    "limit_share": geometric_mean(x["limit_share"] for x in chosen),
                    "least_share": min(x["limit_share"] for x in chosen),
                    "speedup": geometric_mean(factors),
                    "slower": sum(x < 1 for x in factors) if factors else None,
                }
            )
    return found


def find_slower(rows) -> list:
    """The rows of Bastile's that take longer than torch.compile's, with both times."""
    rows = [row for row in rows if row["status"] == "ok"]
    theirs = _by_case(rows, "compile")
    found = []
    for key, row in _by_case(rows, "bastile").items():
        beside = theirs.get(key)
        if beside is None:
            continue
        factor = row["device_us"]["median"] / beside["device_us"]["median"]
        if factor > 1:
            is_beyond = row["device_us"]["low"] > beside["device_us"]["high"]
            found.append(
                {
                    **row,
                    "compile_us": beside["device_us"],
                    "factor": factor,
                    "beyond": is_beyond,
                }
            )
    return sorted(found, key=lambda row: -row["factor"])


def _by_case(rows, provider):
    return {_key(row): row for row in rows if row["provider"] == provider}


def _key(row):
    return row["op"], row["direction"]


def _table(rows):
    done = [row for row in rows if row["status"] == "ok"]
    lines = [format_table(done, COLUMNS)] if done else []
    lines += [
        f"{PROVIDERS[row['provider']].title} FAILED: {row['error']}"
        for row in rows
        if row["status"] == "failed" and row["direction"] == "forward"
    ]
    return "\n".join(lines)


def _print_end(report, wrong):
    if report.document["summary"]:
        print("\nShares of the limit (geometric means)")
        print(format_table(report.document["summary"], _SUMMARY_COLUMNS))
    ours = [
        row
        for row in report.rows
        if row["provider"] == "bastile" and row["status"] == "ok"
    ]
    if ours:
        print("\nFarthest from the limit")
        farthest = sorted(ours, key=lambda row: row["limit_share"])[:_WORST]
        print(format_table(farthest, [_OP, _SHAPE, *COLUMNS]))
    slower = find_slower(report.rows)
    if slower:
        print("\nSlower than torch.compile")
        print(format_table(slower, _SLOWER_COLUMNS))
    for row in wrong:
        print(
            f"{row['op']} {row['direction']}: WRONG: its largest error is "
            f"{row['max_error']:.1e}, {row['max_error_ratio']:.0f} times PyTorch's, "
            f"its norm {row['norm_error']:.1e}, {row['norm_error_ratio']:.0f} times",
            file=sys.stderr,
        )
    print(f"\nresults: {report.path} and {report.path.with_suffix('.csv')}")


def _error(key):
    def text(row):
        if key not in row:
            return ""
        ratio = row.get(f"{key}_ratio")
        beside = "" if ratio is None else f" ({ratio:.2f})"
        return f"{row[key]:.1e}{beside}"

    return text


_OP = Column("formula", "op", right=False)
_SHAPE = Column("shape", lambda row: shape_text(row["shape"]), right=False)
_LIBRARY = Column("library", lambda row: PROVIDERS[row["provider"]].title, right=False)
COLUMNS = [
    Column("direction", "direction", right=False),
    _LIBRARY,
    Column("device us", "device_us"),
    Column("MB", number_text("bytes", 0, 1e-6)),
    Column("copy us", "copy_us"),
    Column("special", number_text("special", 0)),
    Column("other", number_text("other", 0)),
    Column("arithmetic us", number_text("arithmetic_us", 1)),
    Column("limit us", number_text("limit_us", 1)),
    Column("of it", number_text("limit_share", 2)),
    Column("largest error", _error("max_error")),
    Column("error's norm", _error("norm_error")),
    *_resources.COLUMNS,
]
_SUMMARY_COLUMNS = [
    Column("direction", "direction", right=False),
    _LIBRARY,
    Column("formulas", "count"),
    Column("of the limit", number_text("limit_share", 3)),
    Column("least", number_text("least_share", 2)),
    Column("times Bastile's time", number_text("speedup", 2)),
    Column("faster than Bastile", "slower"),
]
_SLOWER_COLUMNS = [
    _OP,
    _SHAPE,
    Column("direction", "direction", right=False),
    Column("Bastile us", "device_us"),
    Column("torch.compile us", lambda row: spread_text(row["compile_us"])),
    Column("times", number_text("factor", 2)),
    Column("", lambda row: "beyond the spread" if row["beyond"] else "", right=False),
]
