# Part of Bastile, under the MIT License. See LICENSE.
"""Time attention, forward and backward, beside other libraries.

Beside Bastile's kernel stand the formula written out in PyTorch, the flash and cuDNN
kernels of `scaled_dot_product_attention`, FlexAttention and, where their wheels are
installed, FlashAttention-4 (`flash_attn.cute`) and FlashAttention-3 (`fa3-fwd`, which has
no backward). Rows of a case take turns, in which calls follow each other, so that each has
the clock that it leaves the GPU with. TFLOP/s are those of the scores that are seen, of
two products forward and five backward; "share" is the time of the fastest other library
divided by a row's. "first" is the first call's time in this process, with what the caches
on the disk have. Memory is the most that a call has at once beside its arguments. Errors
are the largest against float64, relative to the norm, of a smaller case.
"""

import argparse
import importlib.util

from bastile_bench import _options
from bastile_bench._progress import Progress
from bastile_bench._report import Column, format_table, number_text, shape_text
from bastile_bench._statistics import spread_text, summarize

#: By name: batch, sequence, heads of queries and of keys, size, and what is special.
CASES = {
    "llama-1b": ((4, 2048, 32, 8, 64), {}),
    "llama-8b": ((4, 2048, 32, 8, 128), {}),
    "llama-8b-long": ((1, 16384, 32, 8, 128), {}),
    "full": ((2, 8192, 16, 16, 128), {"causal": False}),
    "qwen3-0.6b": ((4, 2048, 16, 8, 128), {}),
    "gpt-oss": ((2, 2048, 64, 8, 64), {"sinks": True}),
    "gpt-oss-window": ((2, 2048, 64, 8, 64), {"sinks": True, "window": 128}),
    "gpt-oss-8k": ((1, 8192, 64, 8, 64), {"sinks": True}),
    "gpt-oss-8k-window": ((1, 8192, 64, 8, 64), {"sinks": True, "window": 128}),
}
#: Lengths of causal attention of 32 and 8 heads of 128, as many as make 16384 tokens.
LENGTHS = (512, 1000, 1024, 2047, 2048, 4097, 8192, 16384, 32768)
#: What is measured, by name: the library, its title, and the module that it needs.
ROWS = {
    "bastile": ("bastile", "Bastile", None),
    "written": ("torch", "written out", None),
    "flash": ("torch", "FlashAttention-2", None),
    "cudnn": ("torch", "cuDNN", None),
    "flex": ("torch", "FlexAttention", None),
    "fa4": ("torch", "FlashAttention-4", "flash_attn.cute"),
    "fa3": ("torch", "FlashAttention-3", "fa3_fwd_interface"),
}
_TOKENS = 16384


def add_arguments(parser) -> None:
    parser.add_argument(
        "--cases",
        nargs="*",
        choices=CASES,
        metavar="CASE",
        default=list(CASES),
        help=f"of {', '.join(CASES)} (all)",
    )
    parser.add_argument(
        "--lengths",
        nargs="*",
        type=_length,
        metavar="N",
        default=list(LENGTHS),
        help="lengths of causal attention of 32 and 8 heads of 128 "
        f"({' '.join(map(str, LENGTHS))})",
    )
    parser.add_argument(
        "--shapes",
        nargs="*",
        type=_shape,
        metavar="BxSxHxGxD",
        default=[],
        help="further causal ones: batch, sequence, heads of queries and of keys, size",
    )
    parser.add_argument(
        "--rows", nargs="+", choices=ROWS, default=list(ROWS), help="which rows (all)"
    )
    parser.add_argument(
        "--forward-only", action="store_true", help="leave out the backward"
    )
    _options.add_timing(parser, rounds=20)


def of_preset(arguments) -> argparse.Namespace:
    """The arguments of this command for those of `kernels` with its preset."""
    names = ("device", "dtype", "out", "no_plots", "forward_only")
    return _options.of_preset(add_arguments, [], arguments, names)


def _length(text):
    length = int(text) if text.isdecimal() else 0
    if length < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no length of a sequence")
    return length


def _shape(text):
    sizes = _options.parse_sizes(text)
    if len(sizes) != 5 or sizes[2] % sizes[3]:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not batch x sequence x heads x heads of keys x size"
        )
    return sizes


def run(arguments) -> int:
    """Measures, prints and writes; 1 if a call of Bastile's failed."""
    device, dtype, report = _options.open_report("attention", arguments)
    from bastile_bench import _attentions

    directions = ("forward",) if arguments.forward_only else ("forward", "backward")
    cases = _cases(arguments, _attentions.Case)
    if not cases:
        raise ValueError("no case and no length is left: nothing to measure")
    with Progress("measuring", len(cases)) as progress:
        for case in cases:
            progress.step(f"{case.name} {shape_text(case.shape)}", 0)
            names = [
                name
                for name in arguments.rows
                if _is_installed(name) and _attentions.can_have(name, case, device.name)
            ]
            options = arguments.rounds, directions, dtype, device
            found = _attentions.measure(case, names, *options)
            rows = _rows(case, found, _factors(directions), arguments.dtype, device)
            report.add(*rows)
            progress.print(format_table(rows, COLUMNS))
            progress.step()
    if not arguments.lengths:
        arguments.no_plots = True
    return _options.finish(report, arguments)


def _cases(arguments, make):
    cases = [make(name, *CASES[name][0], **CASES[name][1]) for name in arguments.cases]
    for length in arguments.lengths:
        batch = max(1, _TOKENS // length)
        cases.append(make("length", batch, length, 32, 8, 128))
    return cases + [make("shape", *shape) for shape in arguments.shapes]


def _is_installed(name):
    module = ROWS[name][2]
    if module is None:
        return True
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        # Not even the package around it is there.
        return False


def _factors(directions):
    from bastile_bench import _attentions

    return {direction: _attentions.PRODUCTS[direction] for direction in directions}


def _rows(case, found, factors, dtype, device):
    rows = []
    for direction, factor in factors.items():
        medians = {
            name: summarize(measured.seconds[direction])["median"]
            for name, measured in found.items()
            if measured.seconds.get(direction)
        }
        for name, measured in found.items():
            provider, title, _ = ROWS[name]
            row = {
                "op": case.name,
                "shape": list(case.shape),
                "dtype": _options.DTYPES[dtype],
                "direction": direction,
                "provider": provider,
                "kernel": title,
                "causal": case.causal,
                "window": case.window,
                "sinks": case.sinks,
            }
            if measured.error:
                rows.append({**row, "status": "failed", "error": measured.error})
            elif name in medians:
                times = summarize([1e6 * x for x in measured.seconds[direction]])
                others = [time for other, time in medians.items() if other != name]
                row.update(
                    status="ok",
                    device_us=times,
                    tflops=factor * case.operations / times["median"] / 1e6,
                    first_ms=1e3 * measured.first[direction],
                    peak_bytes=measured.peak[direction],
                    max_error=measured.errors[direction],
                    method="events" if device.name != "cpu" else "wall",
                )
                if others:
                    row["share"] = min(others) / medians[name]
                rows.append(row)
    return rows


def _what(row):
    words = [row["op"], "causal" if row["causal"] else "full"]
    if row["window"] is not None:
        words.append(f"window {row['window']}")
    return " ".join(words + (["sinks"] if row["sinks"] else []))


COLUMNS = [
    Column("what", _what, False),
    Column("shape", lambda row: shape_text(row["shape"]), False),
    Column("direction", "direction", False),
    Column("library", "kernel", False),
    Column(
        "us",
        lambda row: spread_text(row["device_us"], 1) if "device_us" in row else "",
    ),
    Column("TFLOP/s", number_text("tflops", 0)),
    Column("share", number_text("share", 2)),
    Column("first ms", number_text("first_ms", 0)),
    Column("extra MiB", number_text("peak_bytes", 1, 2**-20)),
    Column(
        "error", lambda row: f"{row['max_error']:.1e}" if "max_error" in row else ""
    ),
    Column("", lambda row: row.get("error", ""), False),
]
