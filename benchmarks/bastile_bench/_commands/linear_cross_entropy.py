# Part of Bastile, under the MIT License. See LICENSE.
"""Time a linear layer with its cross-entropy: the loss and both gradients.

Beside it stand the three products of matrices alone, which is as fast as it can get
with the same products; "share" is their time divided by a row's. The rows take turns,
in which calls follow each other, so that each has the clock that it leaves the GPU with.
"pieces" are the chunks or slabs of the logits. Memory is the most that a call has at
once beside its arguments, its gradients included. Errors are those of the gradients
against float64, relative to their norms, of 512 tokens and 8192 classes in as many
pieces as the whole has; "ratio" divides them by PyTorch's.
"""

import argparse

from bastile_bench import _options, _providers
from bastile_bench._progress import Progress
from bastile_bench._providers import PROVIDERS
from bastile_bench._report import Column, format_table, number_text, shape_text
from bastile_bench._statistics import spread_text, summarize

SHAPES = (
    (4096, 4096, 128256),
    (8192, 2560, 151936),
    (8192, 2880, 201088),
    (32768, 1024, 151936),
)
#: What is measured, by name: the library, and how it is called.
ROWS = {
    "products": ("torch", "three products alone"),
    "bastile": ("bastile", "linear_cross_entropy"),
    "recompute": ("bastile", "linear_cross_entropy, recompute"),
    "budget": ("bastile", "linear_cross_entropy, budget"),
    "torch": ("torch", "linear_cross_entropy"),
    "compile": ("compile", "linear_cross_entropy"),
    "liger": ("liger", "linear_cross_entropy"),
    "quack": ("quack", "linear_cross_entropy"),
}
#: The shape whose gradients are compared with those of float64, but for H.
_CHECKED = 512, 8192


def add_arguments(parser) -> None:
    parser.add_argument(
        "--shapes",
        nargs="+",
        type=_shape,
        metavar="TxHxV",
        default=list(SHAPES),
        help="tokens, length of a hidden state and classes "
        f"({' '.join(map(shape_text, SHAPES))})",
    )
    parser.add_argument(
        "--rows", nargs="+", choices=ROWS, default=list(ROWS), help="which rows (all)"
    )
    parser.add_argument(
        "--budget",
        type=int,
        default=256,
        metavar="MIB",
        help="MiB of logits of the row 'budget' (256)",
    )
    _options.add_timing(parser, rounds=10)


def _shape(text):
    sizes = _options.parse_sizes(text)
    if len(sizes) != 3:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not tokens x length x classes, as in 8192x2880x201088"
        )
    return sizes


def run(arguments) -> int:
    """Measures, prints and writes; 1 if a call of Bastile's failed."""
    device, dtype, report = _options.open_report("linear-cross-entropy", arguments)
    from bastile_bench import _linear_losses

    rows = _installed(arguments.rows)
    with Progress("measuring", len(arguments.shapes)) as progress:
        for shape in arguments.shapes:
            progress.step(shape_text(shape), 0)
            case = _linear_losses.Case(
                shape, _CHECKED, dtype, device, arguments.budget << 20
            )
            found = _linear_losses.measure(case, list(rows), arguments.rounds)
            report.add(*(_row(rows[name], case, found, name) for name in rows))
            progress.step()
    print(format_table(report.rows, COLUMNS))
    print(f"\nresults: {report.path} and {report.path.with_suffix('.csv')}")
    failed = [row for row in report.rows if row["status"] == "failed"]
    return 1 if any(row["provider"] == "bastile" for row in failed) else 0


def _installed(names):
    """The rows of ``names`` whose libraries are there."""
    wanted = dict.fromkeys(ROWS[name][0] for name in names)
    there = {loaded.name for loaded in _providers.load(wanted)}
    rows = {name: ROWS[name] for name in names if ROWS[name][0] in there}
    if not rows:
        raise ValueError("none of the libraries is installed: nothing to measure")
    return rows


def _row(of, case, found, name):
    provider, op = of
    row = {
        "op": op,
        "shape": list(case.shape),
        "dtype": str(case.dtype).removeprefix("torch."),
        "direction": "both",
        "provider": provider,
    }
    measured = found[name]
    if measured.error:
        return {**row, "status": "failed", "error": measured.error}
    times = summarize([1e6 * seconds for seconds in measured.seconds])
    tokens, length, classes = case.shape
    row.update(
        status="ok",
        device_us=times,
        tflops=6 * tokens * length * classes / times["median"] / 1e6,
        share=_share(times, found),
        peak_bytes=measured.peak,
        pieces=measured.pieces,
        method="events" if case.device.name != "cpu" else "wall",
    )
    if measured.errors:
        row.update(
            max_error=max(measured.errors),
            error_hidden=measured.errors[0],
            error_weight=measured.errors[1],
            error_ratio=_ratio(measured, found),
        )
    return row


def _share(times, found):
    """The products' time as a share of this one."""
    products = found.get("products")
    if products is None or products.error:
        return None
    return summarize(products.seconds)["median"] * 1e6 / times["median"]


def _ratio(measured, found):
    """The larger of both gradients' errors beside those of plain PyTorch."""
    plain = found.get("torch")
    if plain is None or not plain.errors or not min(plain.errors):
        return None
    return max(one / other for one, other in zip(measured.errors, plain.errors))


def _milliseconds(row):
    times = row.get("device_us")
    if times is None:
        return ""
    scaled = {key: times[key] / 1e3 for key in ("median", "low", "high")}
    return spread_text(scaled, 2)


COLUMNS = [
    Column("tokens x length x classes", lambda row: shape_text(row["shape"]), False),
    Column("library", lambda row: PROVIDERS[row["provider"]].title, False),
    Column("what", "op", False),
    Column("ms", _milliseconds),
    Column("TFLOP/s", number_text("tflops", 0)),
    Column("share", number_text("share", 3)),
    Column("pieces", "pieces"),
    Column("extra GiB", number_text("peak_bytes", 2, 2**-30)),
    Column("error dX", lambda row: _error(row, "error_hidden")),
    Column("error dW", lambda row: _error(row, "error_weight")),
    Column("ratio", number_text("error_ratio", 2)),
    Column("", lambda row: row.get("error", ""), False),
]


def _error(row, key):
    return f"{row[key]:.1e}" if key in row else ""
