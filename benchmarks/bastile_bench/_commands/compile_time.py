# Part of Bastile, under the MIT License. See LICENSE.
"""Time the compiler: forward and backward of each op, from text to PTX, in a process.

Nothing comes out of the kernel cache. The first run of an op may be slower than the
following ones; both are shown.
"""

import contextlib
import dataclasses
import os
import time

from bastile_bench import _environment, _options
from bastile_bench._progress import Progress
from bastile_bench._report import (
    Column,
    Report,
    describe_environment,
    format_table,
    shape_text,
)
from bastile_bench._statistics import summarize


def add_arguments(parser) -> None:
    parser.add_argument(
        "--ops", nargs="+", metavar="OP", help="which ops (all)", choices=_names()
    )
    parser.add_argument(
        "--dtype", choices=_options.DTYPES, default="bf16", help="(bf16)"
    )
    parser.add_argument(
        "--target", default="sm_90", help="as `bastile targets` lists them (sm_90)"
    )
    parser.add_argument(
        "--runs", type=int, default=11, help="of each op, beside the first (11)"
    )
    _options.add_folder(parser)


def _names():
    from bastile_bench import _ops

    return list(_ops.OPS)


def run(arguments) -> int:
    """Measures, prints and writes."""
    from bastile import _bastile

    if arguments.target not in _bastile.targets():
        raise ValueError(
            f"there is no target '{arguments.target}'; there are "
            f"{', '.join(_bastile.targets())}"
        )
    if arguments.runs < 1:
        raise ValueError(f"--runs must be at least 1, but is {arguments.runs}")
    environment = _environment.describe("cpu")
    report = Report("compile-time", environment, arguments.out)
    print(describe_environment(environment))
    ops = _options.find_ops(arguments.ops)
    with _without_cache(), Progress("compiling", len(ops)) as progress:
        for op in ops:
            progress.step(op.name, 0)
            report.add(_measure(op, arguments))
            progress.step()
    print(format_table(report.rows, COLUMNS))
    return _options.finish(report, arguments)


@contextlib.contextmanager
def _without_cache():
    """The code that is measured is not kept in the cache. (A process that has opened the
    cache before keeps it, in which `_compile` never finds anything.)"""
    before = os.environ.get("BASTILE_CACHE")
    os.environ["BASTILE_CACHE"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["BASTILE_CACHE"]
        else:
            os.environ["BASTILE_CACHE"] = before


def _measure(op, arguments):
    from bastile_bench._providers import of_bastile

    shape = op.shapes(("models", "more"))[0]
    kernel = of_bastile.kernel(op.name, shape, arguments.dtype)
    request = kernel._request.on(arguments.target)
    samples = [_compile(request, run) for run in range(arguments.runs + 1)]
    return {
        "op": op.name,
        "shape": list(shape),
        "dtype": arguments.dtype,
        "direction": "both" if op.gradients else "forward",
        "provider": "bastile",
        "status": "ok",
        "target": arguments.target,
        "first_ms": samples[0] * 1e3,
        "compile_ms": summarize([1e3 * sample for sample in samples[1:]]),
    }


def _compile(request, run):
    """Seconds from text to PTX. Raises ``RuntimeError`` if nothing was compiled."""
    from bastile import _bastile

    # Text that nobody compiled before is in no cache.
    unique = f"{request.source}\n// {os.getpid()}, {time.time_ns()}, {run}\n"
    native = dataclasses.replace(request, source=unique).native()
    before = _bastile.compilations()
    start = time.perf_counter()
    _bastile.load(native)
    seconds = time.perf_counter() - start
    if _bastile.compilations() == before:
        raise RuntimeError("the code came out of the cache; nothing was measured")
    return seconds


COLUMNS = [
    Column("op", "op", right=False),
    Column("shape", lambda row: shape_text(row["shape"])),
    Column("direction", "direction", right=False),
    Column("first ms", lambda row: f"{row['first_ms']:.1f}"),
    Column("then ms", "compile_ms"),
]
