# Part of Bastile, under the MIT License. See LICENSE.
"""Time ops beside other libraries and a copy of the same bytes.

For each op, shape and direction, of each library:

  device   time on the device alone: calls captured in a CUDA graph over rotating
           tensors larger than the L2 cache, so that neither the host nor the cache
           is in it
  wall     time of a call as a user makes it, many back to back
  host     time that a call takes of the host, on tiny tensors
  copy     device time of a copy of as many bytes as the op has to move, at least
  share    the copy's time divided by the device's: 1 is as fast as memory allows
  error    the largest difference from float64, divided by the largest number

On the device the backward runs behind all forwards, timed alone; of the wall and the
host, it is what forward and backward together take longer than the forward.
"""

import importlib
import sys
import time

from bastile_bench import _environment, _ops, _options, _resources, _summary
from bastile_bench._progress import Progress
from bastile_bench._providers import PROVIDERS
from bastile_bench._report import (
    Column,
    Report,
    describe_environment,
    format_table,
    shape_text,
)

DIRECTIONS = ("inference", "forward", "backward", "both")
#: The presets that are no shapes of ops, and the commands that measure them.
_COMMANDS = {"attention": "attention", "products": "tensor_cores"}


def add_arguments(parser) -> None:
    _options.add_common(parser)
    shapes = parser.add_mutually_exclusive_group()
    shapes.add_argument(
        "--shapes",
        nargs="+",
        metavar="SHAPE",
        help="as in 8192x2880; of rope, batch x positions x query heads x key heads "
        "x length",
    )
    shapes.add_argument(
        "--preset",
        nargs="+",
        choices=[*_ops.PRESETS, *_COMMANDS],
        default=["models"],
        help="; ".join(f"{name}: {what}" for name, what in _ops.PRESETS.items())
        + "; attention, products, alone: what the command attention measures, and "
        "tensor-cores of products (models)",
    )
    parser.add_argument(
        "--directions",
        nargs="+",
        choices=DIRECTIONS,
        default=["forward", "backward", "both"],
        help="forward records gradients, inference does not; both is a forward and "
        "its backward (forward backward both)",
    )
    parser.add_argument(
        "--forward-only", action="store_true", help="as --directions forward"
    )
    parser.add_argument(
        "--budget-seconds",
        type=float,
        metavar="S",
        help="start no further op and shape after so long",
    )
    parser.add_argument(
        "--no-host", action="store_true", help="leave out the host's time"
    )


def run(arguments) -> int:
    """Measures, prints and writes; 1 if a kernel of Bastile's failed."""
    if alone := [name for name in arguments.preset if name in _COMMANDS]:
        if len(arguments.preset) > 1 or arguments.ops:
            raise ValueError(f"--preset {alone[0]} stands alone, without --ops")
        command = importlib.import_module(
            f"bastile_bench._commands.{_COMMANDS[alone[0]]}"
        )
        return command.run(command.of_preset(arguments))
    if arguments.forward_only:
        arguments.directions = ["forward"]
    cases = find_cases(arguments)
    device, providers, dtype = _options.open_all(arguments)
    environment = _environment.describe(arguments.device)
    report = Report("kernels", environment, arguments.out)
    report.document["left_out"] = _options.left_out(arguments, providers)
    print(describe_environment(environment))
    print(f"{len(cases)} ops and shapes; device time is {device.device_time}")
    measured = _Measured(arguments, device, providers, dtype)
    budget = arguments.budget_seconds
    deadline = float("inf") if budget is None else time.monotonic() + budget
    with Progress("measuring", len(cases)) as progress:
        for op, shape in cases:
            if time.monotonic() > deadline:
                progress.print(
                    f"{budget:g} s are over: the rest, from {op.name} "
                    f"{shape_text(shape)} on, was not measured"
                )
                break
            progress.step(f"{op.name} {shape_text(shape)}", 0)
            rows = measured.rows_of(op, shape)
            report.add(*rows)
            progress.print(describe_case(op, shape, rows))
            progress.step()
    report.document["environment"].update(
        {f"end_{key}": value for key, value in _environment.state(device.name).items()}
    )
    report.document["summary"] = _summary.summarize_speedups(report.rows)
    report.write()
    print_summary(report)
    return _options.finish(report, arguments)


def find_cases(arguments) -> list:
    """(op, shape) of all that is asked for. Raises ``ValueError`` for a shape that
    an op does not have, and if nothing is left."""
    ops = _options.find_ops(arguments.ops)
    if arguments.shapes:
        if not arguments.ops:
            raise ValueError("--shapes needs --ops, whose shapes they are")
        shapes = [_ops.parse_shape(text) for text in arguments.shapes]
        for op in ops:
            for shape in shapes:
                _ops.check_shape(op, shape)
        found = [(op, shape) for op in ops for shape in shapes]
    else:
        found = [(op, shape) for op in ops for shape in op.shapes(arguments.preset)]
    wanted = set(arguments.directions)
    found = [(op, shape) for op, shape in found if _directions(op, wanted)]
    if not found:
        raise ValueError(
            "nothing to measure: these ops have no such direction, or no shape in "
            f"the preset {' '.join(arguments.preset)}"
        )
    return found


def _directions(op, wanted):
    """Those of ``wanted`` that ``op`` has, in their order; without gradients, that
    is the forward alone."""
    if op.gradients:
        directions = op.directions if op.together else DIRECTIONS
    else:
        directions = ("forward",)
    return tuple(x for x in directions if x in wanted)


class _Measured:
    """Measures cases; the host's time of an op only once."""

    def __init__(self, arguments, device, providers, dtype):
        self._wanted = set(arguments.directions)
        self._with_host = not arguments.no_host
        self._device = device
        self._providers = providers
        self._dtype = dtype
        self._dtype_name = arguments.dtype
        self._host = {}

    def rows_of(self, op, shape) -> list:
        import torch

        from bastile_bench import _measure

        case = _measure.Case(op, shape, self._dtype, _directions(op, self._wanted))
        try:
            rows = _measure.measure_case(case, self._providers, self._device)
        except torch.OutOfMemoryError as error:
            rows = _measure.failed_rows(case, self._providers, error)
        for row in rows:
            row["dtype"] = self._dtype_name
        if self._with_host:
            self._add_host(op, case, rows)
        self._add_kernels(op, shape, rows)
        return rows

    def _add_host(self, op, case, rows):
        from bastile_bench import _host

        if op.name not in self._host:
            self._host[op.name] = _host.measure_op(
                op, self._providers, self._dtype, self._device, case.kinds
            )
        times = self._host[op.name]
        for row in rows:
            kind = row["direction"]
            found = times.get((row["provider"], kind if op.gradients else "inference"))
            if row["direction"] == "backward":
                found = _difference(
                    times.get((row["provider"], "both")),
                    times.get((row["provider"], "forward")),
                )
            if row["status"] == "ok" and isinstance(found, dict):
                row["host_us"] = found

    def _add_kernels(self, op, shape, rows):
        """Adds what Bastile's kernels take of the GPU."""
        ours = [row for row in rows if row["provider"] == "bastile"]
        if self._device.name == "cpu" or not ours:
            return
        from bastile_bench._providers import of_bastile

        try:
            kernel = of_bastile.kernel(op.name, shape, self._dtype)
            found = _resources.of_directions(kernel, self._device.ordinal)
        except (RuntimeError, ValueError) as error:
            print(f"{op.name}: its kernels are not described: {error}", file=sys.stderr)
            return
        for row in ours:
            row["kernels"] = found[row["direction"]]


def _difference(both, forward):
    if not isinstance(both, dict) or not isinstance(forward, dict):
        return None
    return {
        "median": both["median"] - forward["median"],
        "low": both["low"] - forward["high"],
        "high": both["high"] - forward["low"],
        "count": both["count"],
    }


def _number(key, form):
    return lambda row: "" if row.get(key) is None else form.format(row[key])


def _memory(row):
    peak = row.get("peak_bytes")
    return "" if peak is None else f"{peak / 1e6:.0f}"


def _device_title(row):
    times = row.get("device_us")
    if not times:
        return row.get("error", "")
    mark = "*" if row["method"] == "events" else ""
    return f"{times['median']:.1f} ±{(times['high'] - times['low']) / 2:.1f}{mark}"


COLUMNS = [
    Column("direction", "direction", right=False),
    Column("library", lambda row: PROVIDERS[row["provider"]].title, right=False),
    Column("device us", _device_title),
    Column("wall us", "wall_us"),
    Column("host us", "host_us"),
    Column("copy us", "copy_us"),
    Column("share", _number("share", "{:.2f}")),
    Column("GB/s", _number("gb_per_s", "{:.0f}")),
    Column("peak MB", _memory),
    Column("error", _number("max_error", "{:.1e}")),
    *_resources.COLUMNS,
]


def describe_case(op, shape, rows) -> str:
    """The rows of one op and shape as text."""
    done = [row for row in rows if row["status"] == "ok"]
    lines = [f"\n{op.name} {shape_text(shape)} {rows[0]['dtype']}: {op.about}"]
    if done:
        lines.append(format_table(done, COLUMNS))
    errors = {
        row["provider"]: row["error"] for row in rows if row["status"] == "failed"
    }
    lines += [f"{PROVIDERS[name].title} FAILED: {errors[name]}" for name in errors]
    if any(row["method"] == "events" for row in done):
        lines.append("* by events around the calls, which cannot be in a CUDA graph")
    return "\n".join(lines)


def print_summary(report) -> None:
    summary = report.document["summary"]
    if summary:
        print("\nHow many times faster Bastile is (geometric means)")
        print(format_table(summary, _summary.SUMMARY_COLUMNS))
